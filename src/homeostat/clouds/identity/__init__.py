"""Keystone: the service's logins, trusts of users in the service, and users for servers."""
