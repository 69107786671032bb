"""Zaqar queues for signals of servers: read and emptied as the user of the resource, whose project has the queues."""

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
"""Messages read at once; Zaqar's maximum is 20."""
KEPT = 500
"""Maximum number of users whose login is cached."""
CLIENT = {"Client-ID": str(uuid.uuid4())}


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a queue: its id, and its body as sent."""

    id: str
    body: Any


class UserQueues:
    """Queues as seen by the users of stacks. Safe to share between threads.

    The logins are those of `StackUsers.login`. Every method raises Transient if Zaqar or Keystone does not answer, and
    Terminal if they refuse the request.
    """

    def __init__(self, keystone: Keystone) -> None:
        self._keystone = keystone
        self._ways: dict[str, adapter.Adapter] = {}

    def messages(self, login: Mapping[str, str], queue: str) -> list[Message]:
        """Return the oldest unclaimed messages of a queue, without removing them."""
        params = {"limit": MESSAGES, "echo": "true"}
        try:
            page = self._request(login, "GET", f"{_path(queue)}/messages", params=params)
        except Missing:  # only the first message creates the queue
            return []
        return [Message(str(message["id"]), message.get("body")) for message in page.get("messages") or ()]

    def delete(self, login: Mapping[str, str], queue: str, ids: Sequence[str]) -> None:
        """Delete messages."""
        self._request(login, "DELETE", f"{_path(queue)}/messages", params={"ids": ",".join(ids)})

    def end(self, login: Mapping[str, str], queue: str) -> None:
        """Delete a queue, if it and Zaqar still exist."""
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
            # Like bodies of requests: values that cannot be stored are refused here.
            return dict(orjson.loads(answer.content)) if answer.content else {}
        except (TypeError, ValueError) as error:
            raise Terminal(f"Zaqar's answer is not understood: {error}") from error

    def _way(self, login: Mapping[str, str]) -> adapter.Adapter:
        client = self._ways.get(login["user_id"])
        if client is None:
            config = self._keystone.config
            user: Any = {name: login[name] for name in ("user_id", "password", "project_id")}
            client = adapter.Adapter(
                config.connection,
                auth=v3.Password(auth_url=config.login_url, **user),
                service_type="messaging",
                region_name=config.region or None,
                min_version="2",
                max_version="2.latest",
            )
            if len(self._ways) >= KEPT:
                self._ways.clear()
            self._ways[login["user_id"]] = client
        return client


def _path(queue: str) -> str:
    return f"/queues/{quote(queue, safe='')}"
