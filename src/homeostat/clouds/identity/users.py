"""Users for servers, in a domain of their own: each has one role in the project of its stack, and no other rights.

Names are made from tokens and are unique in the domain, so a retry never makes a second user.
"""

import hashlib
import json
from contextlib import suppress
from functools import cached_property

from keystoneauth1 import adapter

from homeostat.clouds.identity.errors import AlreadyExists, Missing
from homeostat.clouds.identity.keystone import Keystone, Wire, named
from homeostat.model.errors import Terminal


class DomainUsers:
    """The users and projects in the domain for users of stacks. Safe to share between threads.

    Every method raises Transient when Keystone does not answer.
    """

    def __init__(self, keystone: Keystone) -> None:
        self._keystone = keystone
        self.public_url = keystone.config.public_url
        self.region = keystone.config.region

    @property
    def _admin(self) -> adapter.Adapter:
        if self._keystone.domain is None:
            raise Terminal("the file of --keystone-config names no domain for users of stacks, and no admin of it")
        return self._keystone.domain

    @cached_property
    def domain_id(self) -> str:
        """Id of the domain."""
        way = self._admin
        who = self._keystone.call(lambda: way.auth.get_access(way.session), looks=True)  # type: ignore[union-attr]
        return str(who.domain_id)

    @cached_property
    def _role_id(self) -> str:
        name = self._keystone.config.user_role
        found = named(self._keystone.request(self._admin, "GET", "roles", params={"name": name}), "roles", name)
        if found is None:
            raise Terminal(f"Keystone has no role {name}: make it, as `homeostat register` does")
        return str(found["id"])

    def project(self, name: str, description: str) -> str:
        """Return the id of the project of that name; it is made if it does not exist."""
        body = {"name": name, "description": description, "domain_id": self.domain_id}
        return self._made("project", body)

    def user(self, name: str, password: str, project_id: str) -> str:
        """Return the id of the user of that name; it is made if missing, and gets this password and its role."""
        body = {"name": name, "password": password, "domain_id": self.domain_id, "default_project_id": project_id}
        user_id = self._made("user", body, {"password": password})
        self._keystone.request(self._admin, "PUT", f"projects/{project_id}/users/{user_id}/roles/{self._role_id}")
        return user_id

    def _made(self, one: str, body: Wire, again: Wire | None = None) -> str:
        """Make a user or project, or set the fields `again` on the existing one; return its id."""
        try:
            return str(self._keystone.request(self._admin, "POST", f"{one}s", json={one: body})[one]["id"])
        except AlreadyExists:
            there = self.find(one, body["name"])
            if there is None:
                raise
            # An earlier attempt, whose response was lost, may have set other values, such as another password.
            if again is not None:
                self._keystone.request(self._admin, "PATCH", f"{one}s/{there}", json={one: again})
            return there

    def key(self, user_id: str, project_id: str, access: str, secret: str) -> None:
        """Give the user this key for signing requests; idempotent."""
        blob = json.dumps({"access": access, "secret": secret})
        body = {"type": "ec2", "user_id": user_id, "project_id": project_id, "blob": blob}
        with suppress(AlreadyExists):
            self._keystone.request(self._admin, "POST", "credentials", json={"credential": body})

    def forget_key(self, access: str) -> None:
        """Delete a key, if it exists; its id in Keystone is the digest of its public part."""
        self.delete("credential", hashlib.sha256(access.encode()).hexdigest())

    def find(self, one: str, name: str) -> str | None:
        """Return the id of the user or project of that name, None if there is none; `one` is `user` or `project`."""
        where = {"name": name, "domain_id": self.domain_id}
        found = named(self._keystone.request(self._admin, "GET", f"{one}s", params=where), f"{one}s", name)
        return None if found is None else str(found["id"])

    def delete(self, one: str, id: str) -> None:
        """Delete a thing, if it exists."""
        try:
            self._keystone.request(self._admin, "DELETE", f"{one}s/{id}")
        except Missing:
            pass
