"""Client of the HTTP API for the commands: stacks by name or id, responses as plain data, faults as CommandError."""

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

from keystoneauth1.adapter import Adapter
from osc_lib.command.command import Command
from osc_lib.exceptions import CommandError

from homeostat.printable import printable, printable_values

Wire = dict[str, Any]
POLL_S = 0.5
"""Interval between two requests while a command waits."""
Found = TypeVar("Found")


class Service:
    """The client.

    Args:
        adapter: Must not raise on error responses.
    """

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter

    def stack(self, name_or_id: str) -> str:
        """Return the path of a stack below the endpoint, such as `/stacks/web/0b6e…`. Raise CommandError."""
        # The Location has the path, so the redirect need not be followed.
        answer = self._adapter.get(f"/stacks/{quote(name_or_id, safe='')}", redirect=False)
        if answer.status_code != 302:
            raise CommandError(_fault(answer))
        return _below(answer.headers["Location"])

    def get(self, path: str) -> Wire:
        return self._answer(self._adapter.get(path))

    def act(self, path: str, action: str, value: Any = None) -> Wire:
        """Request an action on a stack or resource. Raise CommandError."""
        return self._answer(self._adapter.post(f"{path}/actions", json={action: value}))

    def change(self, path: str, body: Mapping[str, Any]) -> Wire:
        return self._answer(self._adapter.patch(path, json=body))

    def post(self, path: str, body: Mapping[str, Any]) -> Wire:
        return self._answer(self._adapter.post(path, json=body))

    @staticmethod
    def next_of(page: Wire) -> str | None:
        """Return the path of the link `next` of a page; None for the last page."""
        return next((_below(link["href"]) for link in page["links"] if link["rel"] == "next"), None)

    def pages(self, path: str, key: str, limit: int) -> tuple[Wire, list[Wire]]:
        """Follow the links `next` of `{key: {"resources": […], "links": […]}}`.

        Returns:
            The first page, and the items of all pages, at most `limit`.
        """
        first: Wire | None = None
        items: list[Wire] = []
        following: str | None = path
        while following is not None and len(items) < limit:
            page = self.get(following)[key]
            first = first or page
            items += page["resources"]
            following = self.next_of(page)
        return first or {}, items[:limit]

    @staticmethod
    def _answer(answer: Any) -> Wire:
        if answer.status_code >= 300:
            raise CommandError(_fault(answer))
        # Terminals interpret control characters, and not every format of the `openstack` command escapes them.
        return dict(printable_values(answer.json() or {})) if answer.content else {}


def service_of(command: Command) -> Service:
    """Return the client of a command."""
    manager: Any = command.app.client_manager
    service: Service = manager.convergence
    return service


def resource_of(stack: str, name: str) -> str:
    """Return the path of a resource below the path of its stack."""
    return f"{stack}/resources/{quote(name, safe='')}"


def until(condition: Callable[[], Found | None], within_s: float, otherwise: str) -> Found:
    """Poll until the condition returns a value. Raise CommandError on a timeout."""
    end = time.monotonic() + within_s
    while True:
        result = condition()
        if result is not None:
            return result
        if time.monotonic() >= end:
            raise CommandError(f"{otherwise} after {within_s:g} s; it goes on. --timeout says how long to wait")
        time.sleep(POLL_S)


def _below(address: str) -> str:
    """Return the part of a URL after the endpoint, with its query."""
    parts = urlsplit(address)
    _, _, rest = parts.path.partition("/stacks/")
    return f"/stacks/{rest}" + (f"?{parts.query}" if parts.query else "")


def _fault(answer: Any) -> str:
    """Return the service's error message; the status if the response has no readable message."""
    try:
        body = answer.json()
        return printable(str(body["error"]["message"])).replace(": : ", ": ")
    except (ValueError, KeyError, TypeError):
        return f"the service answers {answer.status_code} {answer.reason}"
