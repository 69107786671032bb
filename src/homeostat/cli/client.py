"""Client of the Orchestration API; requests and responses keep the format of the API."""

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any
from urllib.parse import quote

import httpx

from homeostat.cli.errors import Fault, Unreachable
from homeostat.cli.settings import ClientSettings
from homeostat.clouds.tls import verifying

Wire = dict[str, Any]
NESTED_DEPTH_MAX = 1000
_TIMEOUT_S = 60.0
_PAGE = 1000


class Client:
    """A client for a single project.

    Raises:
        Fault: The service refuses a request.
        Unreachable: The service does not answer.
    """

    def __init__(self, url: str, settings: ClientSettings) -> None:
        self.url = url
        self._project = settings.project
        self._http = httpx.Client(
            base_url=f"{url}/v1/{quote(self._project, safe='')}",
            auth=(settings.user, settings.password) if settings.user else None,
            follow_redirects=True,
            timeout=_TIMEOUT_S,
            verify=verifying(),
        )

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.close()

    def stacks(self) -> list[Wire]:
        return list(self._request("GET", "stacks")["stacks"])

    def stack(self, name: str, *, outputs: bool = False) -> Wire:
        """Return a stack by name or id; a deleted stack only by its id."""
        params = {} if outputs else {"resolve_outputs": "false"}
        return dict(self._request("GET", f"stacks/{quote(name, safe='/')}", params=params)["stack"])

    def picture_address(self, name: str, identity: str) -> str:
        """Return the URL of the dashboard's page with the picture of a stack."""
        project = quote(self._project, safe="")
        return f"{self.url}/dashboard/#/{project}/stacks/{quote(name, safe='')}/{identity}/picture"

    def find_stack(self, name: str) -> Wire | None:
        """Return a stack by name or id, if it exists."""
        try:
            return self.stack(name)
        except Fault as fault:
            if fault.status == httpx.codes.NOT_FOUND:
                return None
            raise

    def create(self, body: Mapping[str, Any]) -> str:
        """Create a stack and return its id."""
        return str(self._request("POST", "stacks", json=body)["stack"]["id"])

    def update(
        self,
        stack: Mapping[str, Any],
        body: Mapping[str, Any],
        *,
        existing: bool = False,
        previewed: Wire | None = None,
    ) -> None:
        """Update a stack.

        Args:
            existing: Parameters missing in the body keep their values.
            previewed: Preview whose revision must still be the newest.

        Raises:
            Fault: 412 if the stack has changed since the preview.
        """
        self._request("PATCH" if existing else "PUT", _path(stack), json=body, headers=_bound_to(previewed))

    def preview(self, body: Mapping[str, Any]) -> Wire:
        """Preview a creation: `{resource_changes, more_members, …}`."""
        return self._request("POST", "stacks/preview", json=body)

    def preview_update(self, stack: Mapping[str, Any], body: Mapping[str, Any], *, existing: bool = False) -> Wire:
        """Preview an update, nested stacks included."""
        method, params = "PATCH" if existing else "PUT", {"show_nested": "true"}
        return self._request(method, f"{_path(stack)}/preview", json=body, params=params)

    def delete(self, stack: Mapping[str, Any]) -> None:
        self._request("DELETE", _path(stack))

    def resources(self, stack: Mapping[str, Any]) -> list[Wire]:
        """Return the resources of the stack and of its nested stacks."""
        params = {"nested_depth": NESTED_DEPTH_MAX}
        return list(self._request("GET", f"{_path(stack)}/resources", params=params)["resources"])

    def resource(self, stack: Mapping[str, Any], name: str) -> Wire:
        return dict(self._request("GET", f"{_path(stack)}/resources/{quote(name, safe='')}")["resource"])

    def act(
        self, stack: Mapping[str, Any], action: str, resource: str | None = None, value: Wire | None = None
    ) -> Wire:
        """Request an action on the stack, or on a resource; `value` is the argument of the action, if any."""
        below = "" if resource is None else f"/resources/{quote(resource, safe='')}"
        return self._request("POST", f"{_path(stack)}{below}/actions", json={action: value})

    def convergence(self, stack: Mapping[str, Any], resource: str | None = None) -> Wire:
        """Return the switches, and the time of the last observation of the whole stack, or of this resource."""
        params = {} if resource is None else {"resource": resource}
        return dict(self._request("GET", f"{_path(stack)}/convergence", params=params)["convergence"])

    def switch(self, stack: Mapping[str, Any], change: Mapping[str, Any]) -> Wire:
        """Change the switches of convergence; return the new state."""
        return dict(self._request("PATCH", f"{_path(stack)}/convergence", json={"convergence": change})["convergence"])

    def revisions(self, stack: Mapping[str, Any], limit: int) -> list[Wire]:
        """Return the newest revisions, newest first, at most `limit`."""
        return list(self._request("GET", f"{_path(stack)}/revisions", params={"limit": limit})["revisions"])

    def revision(self, stack: Mapping[str, Any], number: int) -> Wire:
        return dict(self._request("GET", f"{_path(stack)}/revisions/{number}")["revision"])

    def go_back(self, stack: Mapping[str, Any], revision: int, previewed: Wire | None = None) -> None:
        """Update the stack to an earlier revision; see `update` for `previewed`."""
        self._request("PATCH", _path(stack), json={"revision": revision}, headers=_bound_to(previewed))

    def preview_going_back(self, stack: Mapping[str, Any], revision: int) -> Wire:
        params = {"show_nested": "true"}
        return self._request("PATCH", f"{_path(stack)}/preview", json={"revision": revision}, params=params)

    def explain(self, stack: Mapping[str, Any], limit: int) -> Wire:
        """Return the first page of reasons why the stack is not at rest, nested stacks included."""
        params = {"nested_depth": NESTED_DEPTH_MAX, "limit": limit}
        return dict(self._request("GET", f"{_path(stack)}/explain", params=params)["explanation"])

    def explain_more(self, explanation: Wire, limit: int) -> Wire:
        """Add reasons from the following pages, until the explanation has at least `limit`."""
        merged = explanation
        while len(merged["resources"]) < limit and (following := _next_page(merged)):
            page = self._request("GET", following)["explanation"]
            merged = {**merged, "links": page["links"], "resources": [*merged["resources"], *page["resources"]]}
        return merged

    def explain_resource(self, stack: Mapping[str, Any], name: str) -> Wire:
        """Return the reasons why a resource is not at rest."""
        address = f"{_path(stack)}/resources/{quote(name, safe='')}/explain"
        return dict(self._request("GET", address, params={"nested_depth": NESTED_DEPTH_MAX})["explanation"])

    def rollouts(self, stack: Mapping[str, Any]) -> list[Wire]:
        """Return the rollouts in progress of the stack and of its nested stacks."""
        return self._listed(f"{_path(stack)}/rollouts", "rollouts", {"nested_depth": NESTED_DEPTH_MAX})

    def health(self, stack: Mapping[str, Any], finding: str | None = None) -> list[Wire]:
        """Return the findings of health policies about resources of the stack and of the groups in it."""
        params: Wire = {"limit": 1000, **({} if finding is None else {"finding": finding})}
        return self._listed(f"{_path(stack)}/health", "health", params)

    def declared_hosts(self, stack: Mapping[str, Any]) -> list[Wire]:
        """Return the hosts declared down to fence a member of the stack."""
        return list(self._request("GET", f"{_path(stack)}/health", params={"limit": 1}).get("hosts", ()))

    def approve_recovery(self, stack: Mapping[str, Any], name: str) -> None:
        """Let the recovery of a resource begin."""
        self._request("POST", f"{_path(stack)}/resources/{quote(name, safe='')}/recovery")

    def rollout(self, stack: Mapping[str, Any], name: str) -> Wire:
        return dict(self._request("GET", f"{_path(stack)}/resources/{quote(name, safe='')}/rollout")["rollout"])

    def steer_rollout(self, stack: Mapping[str, Any], name: str, verb: str) -> Wire:
        """Pause, resume, promote, abort or roll back a rollout; return it."""
        address = f"{_path(stack)}/resources/{quote(name, safe='')}/rollout"
        return dict(self._request("POST", address, json={verb: None})["rollout"])

    def approve_rollout(self, stack: Mapping[str, Any], name: str, step: int | None) -> Wire:
        """Approve a step of a rollout; return the rollout."""
        address = f"{_path(stack)}/resources/{quote(name, safe='')}/rollout/approval"
        return dict(self._request("POST", address, json={} if step is None else {"step": step})["rollout"])

    def events(self, stack: Mapping[str, Any], after: str | None = None) -> Iterator[Wire]:
        """Yield events of the stack and of its nested stacks, oldest first.

        Args:
            after: Id of the last known event; None for all.
        """
        while True:
            params: Wire = {"sort_dir": "asc", "limit": _PAGE, "nested_depth": NESTED_DEPTH_MAX}
            page = self._request(
                "GET", f"{_path(stack)}/events", params={**params, "marker": after} if after else params
            )
            yield from page["events"]
            if len(page["events"]) < _PAGE:
                return
            after = page["events"][-1]["id"]

    def newest_event(self, stack: Mapping[str, Any]) -> str | None:
        params = {"sort_dir": "desc", "limit": 1, "nested_depth": NESTED_DEPTH_MAX}
        newest = self._request("GET", f"{_path(stack)}/events", params=params)["events"]
        return str(newest[0]["id"]) if newest else None

    def _listed(self, path: str, key: str, params: Wire) -> list[Wire]:
        """Return the entries of all pages of a list."""
        page = self._request("GET", path, params=params)
        entries = list(page[key])
        while following := _next_page(page):
            page = self._request("GET", following)
            entries += page[key]
        return entries

    def _request(self, method: str, path: str, **more: Any) -> Wire:
        try:
            answer = self._http.request(method, path, **more)
        except httpx.TransportError as error:
            remedy = "start one with `homeostat serve --detach`, or name another with --url"
            raise Unreachable(f"no service answers at {self.url} ({error}): {remedy}") from error
        if answer.is_success:
            json = answer.headers.get("content-type", "").startswith("application/json")
            return dict(answer.json() or {}) if json else {}
        raise _fault(answer)


def _bound_to(previewed: Wire | None) -> dict[str, str]:
    return {} if previewed is None else {"If-Match": f'"{previewed["revision"]}"'}


def _path(stack: Mapping[str, Any]) -> str:
    return f"stacks/{quote(stack['stack_name'], safe='')}/{stack['id']}"


def _next_page(explanation: Mapping[str, Any]) -> str:
    return next((str(link["href"]) for link in explanation["links"] if link["rel"] == "next"), "")


def _fault(answer: httpx.Response) -> Fault:
    try:
        error = answer.json()["error"]
    except (ValueError, KeyError, TypeError):
        return Fault(f"the service answered {answer.status_code} {answer.reason_phrase}", answer.status_code, "HTTP")
    message = error.get("message") or f"the service answered {answer.status_code}; its log has the reason"
    return Fault(message.replace(": : ", ": "), answer.status_code, error.get("type") or "HTTP")
