"""Users for servers, in a separate domain: each has a single role in the project of its stack, and no further rights.

Names are derived from tokens and are unique in the domain, so a retry never creates a second user.
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
        role = named(self._keystone.request(self._admin, "GET", "roles", params={"name": name}), "roles", name)
        if role is None:
            raise Terminal(f"Keystone has no role {name}: make it, as `homeostat register` does")
        return str(role["id"])

    def project(self, name: str, description: str) -> str:
        """Return the id of the project with this name; create a missing project."""
        body = {"name": name, "description": description, "domain_id": self.domain_id}
        return self._made("project", body)

    def user(self, name: str, password: str, project_id: str) -> str:
        """Return the id of the user with this name; create a missing user, and set password and role."""
        body = {"name": name, "password": password, "domain_id": self.domain_id, "default_project_id": project_id}
        user_id = self._made("user", body, {"password": password})
        self._keystone.request(self._admin, "PUT", f"projects/{project_id}/users/{user_id}/roles/{self._role_id}")
        return user_id

    def _made(self, one: str, body: Wire, again: Wire | None = None) -> str:
        """Create a user or project, or set the fields `again` of an existing one; return its id."""
        try:
            return str(self._keystone.request(self._admin, "POST", f"{one}s", json={one: body})[one]["id"])
        except AlreadyExists:
            id = self.find(one, body["name"])
            if id is None:
                raise
            # An earlier attempt, whose response was lost, may have set other values, such as another password.
            if again is not None:
                self._keystone.request(self._admin, "PATCH", f"{one}s/{id}", json={one: again})
            return id

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
        """Return the id of the user or project with this name; None if absent. `one` is `user` or `project`."""
        where = {"name": name, "domain_id": self.domain_id}
        entry = named(self._keystone.request(self._admin, "GET", f"{one}s", params=where), f"{one}s", name)
        return None if entry is None else str(entry["id"])

    def delete(self, one: str, id: str) -> None:
        """Delete an object, if it exists."""
        try:
            self._keystone.request(self._admin, "DELETE", f"{one}s/{id}")
        except Missing:
            pass
