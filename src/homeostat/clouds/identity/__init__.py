"""Keystone: who asks, on whose behalf the service goes on, and the users that servers are."""
