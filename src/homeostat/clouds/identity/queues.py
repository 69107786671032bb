"""Queues of Zaqar in which servers signal: read and removed as the user of the resource, in whose project they are."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import orjson
from keystoneauth1 import adapter, exceptions
from keystoneauth1.identity import v3

from homeostat.clouds.identity.errors import Missing
from homeostat.clouds.identity.keystone import Keystone, Wire
from homeostat.model.errors import Terminal, Transient

MESSAGES = 10
"""Messages that are read at once; Zaqar gives no more than 20."""
KEPT = 500
"""Users whose login is kept."""
CLIENT = {"Client-ID": str(uuid.uuid4())}


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a queue: its id, and what the sender wrote."""

    id: str
    body: Any


class UserQueues:
    """Queues as the users of stacks reach them. Safe to share between threads.

    The logins are those of `StackUsers.login`. Every method raises Transient when Zaqar or Keystone does not answer,
    and Terminal when they refuse it.
    """

    def __init__(self, keystone: Keystone) -> None:
        self._keystone = keystone
        self._ways: dict[str, adapter.Adapter] = {}

    def messages(self, login: Mapping[str, str], queue: str) -> list[Message]:
        """Return the oldest messages of a queue that are not claimed; they stay there."""
        params = {"limit": MESSAGES, "echo": "true"}
        try:
            found = self._request(login, "GET", f"{_path(queue)}/messages", params=params)
        except Missing:  # no message has made it yet
            return []
        return [Message(str(each["id"]), each.get("body")) for each in found.get("messages") or ()]

    def delete(self, login: Mapping[str, str], queue: str, ids: Sequence[str]) -> None:
        """Delete messages."""
        self._request(login, "DELETE", f"{_path(queue)}/messages", params={"ids": ",".join(ids)})

    def end(self, login: Mapping[str, str], queue: str) -> None:
        """Delete a queue, if it exists; where there is no Zaqar any more there is none."""
        try:
            self._request(login, "DELETE", _path(queue))
        except Missing:
            pass

    def _request(self, login: Mapping[str, str], method: str, path: str, **more: Any) -> Wire:
        try:
            answer = self._way(login).request(path, method, raise_exc=True, headers=CLIENT, **more)
        except (exceptions.CatalogException, exceptions.NotFound) as error:
            raise Missing(f"Zaqar: {error}") from error
        except (exceptions.BadRequest, exceptions.Unauthorized, exceptions.Forbidden) as error:
            raise Terminal(f"Zaqar refuses it: {error}") from error
        except exceptions.ClientException as error:
            raise Transient(f"Zaqar does not answer: {error}") from error
        try:
            # As bodies of requests are read: what cannot be stored is not read either.
            return dict(orjson.loads(answer.content)) if answer.content else {}
        except (TypeError, ValueError) as error:
            raise Terminal(f"Zaqar's answer is not understood: {error}") from error

    def _way(self, login: Mapping[str, str]) -> adapter.Adapter:
        found = self._ways.get(login["user_id"])
        if found is None:
            config = self._keystone.config
            user: Any = {name: login[name] for name in ("user_id", "password", "project_id")}
            found = adapter.Adapter(
                config.connection,
                auth=v3.Password(auth_url=config.login_url, **user),
                service_type="messaging",
                region_name=config.region or None,
                min_version="2",
                max_version="2.latest",
            )
            if len(self._ways) >= KEPT:
                self._ways.clear()
            self._ways[login["user_id"]] = found
        return found


def _path(queue: str) -> str:
    return f"/queues/{quote(queue, safe='')}"
