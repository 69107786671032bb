"""Stacks in regions: services with the Orchestration API v1, as a cloud with the kind `remote_stack`.

A stack carries its token as a tag, to be found after a lost response, and a tag common to all such stacks: one paged
list returns all stacks of a project in a region. The list lacks outputs, which are read when the list shows a change of
the stack, and when the cached outputs are old.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import httpx

from homeostat.clouds.credentials import Credentials
from homeostat.clouds.port import Answer, Change, ChangeNotice, Creation, Operation
from homeostat.clouds.regions import OWN, Region
from homeostat.clouds.tls import verifying
from homeostat.model.errors import HomeostatError, Rejected, Terminal, Transient, Uncertain, ambiguous
from homeostat.model.observed import Observation, Presence

KIND = "remote_stack"
REGION_KIND = "stack_region"
"""Kind of the regions themselves; they can only be resolved."""
VALIDATE = "validate"
"""Operation that asks a region whether it would accept a stack."""
OWNED = "homeostat:remote"
"""Tag of all stacks of this kind."""
TAG = "homeostat:"
"""Beginning of the tag that has the token of the stack."""
OUTPUTS_S = 60.0
"""Seconds for which cached outputs are used while the list shows no change of their stack."""
PAGE = 500
REQUEST_S = 30.0
VALIDATION_S = 10.0
"""Seconds for validating the templates of one request in all regions together."""
BUSY = (httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE, httpx.codes.CONFLICT)
NOT_TAKEN = (httpx.codes.UNAUTHORIZED, httpx.codes.SERVICE_UNAVAILABLE)
"""Status codes for a token that may be invalid.

If its user has lost every role, Keystone does not report this to the region, which then answers 503."""
Wire = dict[str, Any]


class NotThere(HomeostatError):
    """The API answered that the stack does not exist."""


class Refused(Terminal):
    """The API answered that the request is wrong."""


class Regions:
    """All regions of the deployment. Safe to share between threads."""

    def __init__(
        self,
        regions: Sequence[Region],
        monotonic: Callable[[], float] = time.monotonic,
        credentials: Credentials | None = None,
        own: str = "",
    ) -> None:
        """Take the regions.

        Args:
            monotonic: Seconds of a monotonic clock.
            credentials: Source of tokens for regions without logins; None if they need no authentication.
            own: Name of this service's region in the catalogue; "" for none.
        """
        self._credentials = credentials
        self.names = {region.name for region in regions}
        self.by_name = {region.name: region for region in regions}
        if own and OWN in self.by_name:
            self.by_name.setdefault(own, self.by_name[OWN])
        self.monotonic = monotonic
        self._http = httpx.Client(timeout=REQUEST_S, verify=verifying())
        self._projects: dict[str, RemoteStacks] = {}

    def of(self, project: str) -> "RemoteStacks":
        """Return the cloud of one project's stacks in all regions."""
        return self._projects.setdefault(project, RemoteStacks(self, project))

    def request(self, region: Region, project: str, method: str, path: str, of: str = "", **more: Any) -> Wire:
        """Send one request, and return the body of the response.

        Args:
            method: HTTP method.
            path: Path below the project.
            of: Token or handle of the stack that the request is about; "" for all stacks.
            more: Further arguments of the request.

        Raises:
            NotThere: The stack does not exist.
            Transient: The region does not answer, or is busy.
            Terminal: The region refuses the request.
            Uncertain: The request may have been carried out.
        """
        url = f"{region.url}/v1/{quote(project, safe='')}/{path}"
        looks = method == "GET"
        login = region.login_for(project)
        try:
            answer = self._send(method, url, login, project, of, **more)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise Transient(f"region {region.name} does not answer at {region.url}: {error}") from error
        except httpx.TransportError as error:
            message = f"region {region.name} gave no answer: {error!r}"
            raise (Transient(message) if looks else Uncertain(message)) from error
        if not answer.is_success:
            raise _fault(region, project, answer, looks=looks)
        try:
            return dict(answer.json() or {}) if answer.content else {}
        except ValueError as error:
            message = f"region {region.name} gave an answer that is no JSON object: is {region.url} its address?"
            raise (Transient(message) if looks else Uncertain(message)) from error

    def _send(
        self, method: str, url: str, login: tuple[str, str] | None, project: str, of: str, **more: Any
    ) -> httpx.Response:
        """Send the request with the region's login, or with a token; if that is refused, again with a new token."""
        if login is not None or self._credentials is None:
            return self._http.request(method, url, auth=login, **more)
        token = self._credentials.token(project, of)
        answer = self._http.request(method, url, headers={"X-Auth-Token": token}, **more)
        if answer.status_code not in NOT_TAKEN:
            return answer
        self._credentials.refused(token)
        # Raises if the trust is invalid: this is then the reason, not the region's answer.
        token = self._credentials.token(project, of)
        if answer.status_code != httpx.codes.UNAUTHORIZED:
            return answer
        return self._http.request(method, url, headers={"X-Auth-Token": token}, **more)

    def close(self) -> None:
        self._http.close()


def _fault(region: Region, project: str, answer: httpx.Response, *, looks: bool) -> HomeostatError:
    try:
        reason = str(answer.json()["error"]["message"]).replace(": : ", ": ")
    except (ValueError, KeyError, TypeError):
        reason = f"{answer.status_code} {answer.reason_phrase}"
    message = f"region {region.name}: {reason}"
    if answer.status_code == httpx.codes.NOT_FOUND:
        return NotThere(message)
    if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        message = f"{message} The operator gives the login for project {project} with --region-logins."
        return Transient(message) if looks else Terminal(message)
    if answer.status_code in BUSY:
        wait = answer.headers.get("retry-after", "")
        return Transient(message, float(wait) if wait.isdigit() else None)
    if answer.is_server_error:
        return Transient(message) if looks else Uncertain(message)
    return Refused(message) if answer.status_code == httpx.codes.BAD_REQUEST else Terminal(message)


@dataclass(frozen=True, slots=True)
class _Outputs:
    """Cached outputs of a stack.

    Attributes:
        listed_as: The stack's state in the list at the time of the request; with any other state the outputs are
            outdated.
        requested_at: Time of the request, in monotonic seconds.
        values: Values by name.
    """

    listed_as: tuple[Any, ...]
    requested_at: float
    values: Wire


class RemoteStacks:
    """The cloud port for the stacks of one project in all regions."""

    name = "heat-api"
    kinds = frozenset({KIND, REGION_KIND})
    listing_lag_s = 0.0

    def __init__(self, regions: Regions, project: str) -> None:
        self._regions = regions
        self._project = project
        self._outputs: dict[str, _Outputs] = {}

    # -- looking -----------------------------------------------------------------------------------------------------

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        """Observe stacks; those of a region that does not answer are UNKNOWN.

        Raises:
            Transient: No region answers.
        """
        listed, silent = self._lists({_region_of(handle) for handle in handles})
        if silent and not listed:
            raise next(iter(silent.values()))
        self._forget({region: entries.keys() for region, entries in listed.items()})
        return [self._look(handle, listed, silent) for handle in handles]

    def _look(
        self, handle: str, listed: Mapping[str, Mapping[str, Wire]], silent: Mapping[str, Transient]
    ) -> Observation:
        region = _region_of(handle)
        now = time.time()
        if region in silent:
            return Observation(Presence.UNKNOWN, handle, seen_at=now, reason=str(silent[region]))
        entry = listed[region].get(_id_of(handle))
        if entry is None:
            return Observation(Presence.ABSENT, handle, seen_at=now, reason="there is no such stack")
        return self._seen(region, entry, now)

    def find(self, kind: str, tokens: Sequence[str]) -> list[Observation]:
        """Find stacks by their tokens. A token does not name its region, so all regions are asked.

        Raises:
            Transient: A token was not found, and a region does not answer.
        """
        listed, silent = self._lists(self._regions.names)
        observations: dict[str, Observation] = {}
        sought = {_tag_of(token): token for token in tokens}
        for region, entries in listed.items():
            for entry in entries.values():
                for tag in sought.keys() & set(entry["tags"] or ()):
                    observations[sought[tag]] = self._seen(region, entry, time.time())
        if silent and not observations.keys() >= set(tokens):
            raise next(iter(silent.values()))
        return [observations.get(token) or Observation(Presence.ABSENT, seen_at=time.time()) for token in tokens]

    def resolve(self, kind: str, names: Sequence[str]) -> list[str | None]:
        """Resolve stacks by handle, id or name, or regions by any of their names, which needs no request.

        Raises:
            Transient: A region does not answer; a stack may be in any of them.
        """
        if kind == REGION_KIND:
            known = self._regions.by_name
            return [known[name].name if name in known else None for name in names]
        if kind != KIND:
            return [None] * len(names)
        listed, silent = self._lists(self._regions.names)
        if silent:
            raise next(iter(silent.values()))
        stacks = [(region, entry) for region, entries in listed.items() for entry in entries.values()]
        return [_named(name, stacks) for name in names]

    def _lists(self, names: set[str]) -> tuple[dict[str, dict[str, Wire]], dict[str, Transient]]:
        """Return region -> id -> entry of its list, and the errors of the regions that gave no list."""
        listed: dict[str, dict[str, Wire]] = {}
        silent: dict[str, Transient] = {}
        for name in sorted(names):
            try:
                listed[name] = self._list(self._region(name))
            except Transient as error:
                silent[name] = error
            # A region that refuses the list says nothing about its stacks: they are unknown, not absent.
            except (Terminal, NotThere) as error:
                silent[name] = Transient(str(error))
        return listed, silent

    def _list(self, region: Region) -> dict[str, Wire]:
        entries: dict[str, Wire] = {}
        marker: dict[str, str] = {}
        while True:
            params = {"tags": OWNED, "limit": str(PAGE), "show_hidden": "true", **marker}
            page = self._request(region, "GET", "stacks", params=params)["stacks"]
            entries.update((entry["id"], entry) for entry in page)
            if len(page) < PAGE:
                return entries
            marker = {"marker": page[-1]["id"]}

    def _seen(self, region: str, entry: Wire, now: float) -> Observation:
        action, _, status = entry["stack_status"].partition("_")
        properties: Wire = {
            "id": entry["id"],
            "name": entry["stack_name"],
            "region": region,
            "action": action,
            "status": _word(action, status),
            "outputs": self._outputs_of(region, entry) if status == "COMPLETE" else {},
        }
        if properties["status"] == "failed":
            properties["fault"] = entry.get("stack_status_reason") or ""
        return Observation(Presence.PRESENT, handle_of(region, entry["id"]), properties, now)

    def _outputs_of(self, region: str, entry: Wire) -> Wire:
        """Return the outputs of a stack, from the cache where they are current.

        Raises:
            Transient: The region does not answer.
        """
        listed_as = (entry["stack_status"], entry.get("updated_time"))
        key, now = handle_of(region, entry["id"]), self._regions.monotonic()
        known = self._outputs.get(key)
        if known is not None and known.listed_as == listed_as and now < known.requested_at + OUTPUTS_S:
            return known.values
        try:
            stack = self._request(self._region(region), "GET", _path(entry), of=key)["stack"]
        except NotThere:
            return {}
        values = {output["output_key"]: output.get("output_value") for output in stack.get("outputs") or []}
        self._outputs[key] = _Outputs(listed_as, now, values)
        return values

    def _forget(self, listed: Mapping[str, Any]) -> None:
        """Evict the cached outputs of stacks that no longer exist."""
        for key in list(self._outputs):
            region = _region_of(key)
            if region in listed and _id_of(key) not in listed[region]:
                self._outputs.pop(key, None)

    # -- acting ------------------------------------------------------------------------------------------------------

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        return [self._item(self._create, intent) for intent in intents]

    def _create(self, intent: Creation) -> Answer:
        region, spec = self._region(intent.spec.get("region") or OWN), intent.spec
        body = {"stack_name": spec["name"], **_wanted(spec), "tags": f"{OWNED},{_tag_of(intent.token)}"}
        try:
            stack = self._request(region, "POST", "stacks", of=intent.token, json=body)["stack"]
        # A conflict is Transient, too: an earlier attempt, whose response was lost, may have created the stack.
        except Transient:
            entry = self._of_name(region, spec["name"])
            if entry is None or _tag_of(intent.token) not in (entry["tags"] or ()):
                raise
            return self._seen(region.name, entry, time.time())
        return self._begun(region.name, stack["id"], spec["name"], "CREATE")

    def _of_name(self, region: Region, name: str) -> Wire | None:
        """Return the stack of this kind with this name; None if absent."""
        return next((entry for entry in self._list(region).values() if entry["stack_name"] == name), None)

    def update(self, kind: str, changes: Sequence[Change]) -> list[Answer]:
        return self._of_handles([change.handle for change in changes], self._update, changes)

    def _update(self, region: Region, entry: Wire, change: Change) -> Answer:
        # An update replaces the tags; without them the stack would not be found again.
        body = {**_wanted(change.spec), "tags": ",".join(entry["tags"] or ())}
        self._request(region, "PUT", _path(entry), of=change.handle, json=body)
        return self._begun(region.name, entry["id"], entry["stack_name"], "UPDATE")

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        answers = self._of_handles(handles, self._delete, handles)
        return [_not_found(answer) if isinstance(answer, Observation) else answer for answer in answers]

    def _delete(self, region: Region, entry: Wire, handle: str) -> Answer:
        self._request(region, "DELETE", _path(entry), of=handle)
        return self._begun(region.name, entry["id"], entry["stack_name"], "DELETE")

    def operate(self, kind: str, operations: Sequence[Operation]) -> list[Answer]:
        if operations and operations[0].verb == VALIDATE:
            return self._validate([operation.arguments for operation in operations])
        return self._of_handles([operation.handle for operation in operations], self._operate, operations)

    def _validate(self, specs: Sequence[Mapping[str, Any]]) -> list[Answer]:
        """Validate stacks; a silent region is asked only once, and none after the time limit."""
        give_up_at = self._regions.monotonic() + VALIDATION_S
        silent: dict[str, HomeostatError] = {}

        def one(spec: Mapping[str, Any]) -> Answer:
            region, left_s = self._region(spec["region"]), give_up_at - self._regions.monotonic()
            if region.name in silent or left_s <= 0:
                return silent.get(region.name) or Transient("regions take too long to answer")
            body = {name: spec[name] for name in ("template", "parameters", "files")}
            try:
                self._request(region, "POST", "validate", json=body, timeout=left_s)
            except Refused as error:
                return Rejected("StackValidationFailed", str(error).removeprefix(f"region {region.name}: "))
            except (Transient, Uncertain) as error:
                silent[region.name] = error
                raise
            return Observation(Presence.PRESENT, seen_at=time.time())

        return [self._item(one, spec) for spec in specs]

    def _operate(self, region: Region, entry: Wire, operation: Operation) -> Answer:
        if operation.verb not in ("suspend", "resume"):
            return Rejected("NotSupported", f"{operation.verb} of a stack is not supported.")
        self._request(region, "POST", f"{_path(entry)}/actions", json={operation.verb: None})
        return self._begun(region.name, entry["id"], entry["stack_name"], operation.verb.upper())

    def _of_handles(
        self, handles: Sequence[str], act: Callable[[Region, Wire, Any], Answer], items: Sequence[Any]
    ) -> list[Answer]:
        """Act on the stacks with these handles, looked up with one list per region."""
        listed, silent = self._lists({_region_of(handle) for handle in handles})

        def one(index: int) -> Answer:
            handle = handles[index]
            name = _region_of(handle)
            if name in silent:
                return silent[name]
            entry = listed[name].get(_id_of(handle))
            if entry is None:
                return Observation(Presence.ABSENT, handle, seen_at=time.time())
            return act(self._region(name), entry, items[index])

        return [self._item(one, index) for index in range(len(handles))]

    def _item(self, act: Callable[[Any], Answer], item: Any) -> Answer:
        """Act on an item; an error becomes its answer."""
        try:
            return act(item)
        except NotThere as error:
            return Observation(Presence.ABSENT, seen_at=time.time(), reason=str(error))
        except HomeostatError as error:
            return error

    def _begun(self, region: str, stack_id: str, name: str, action: str) -> Observation:
        status = "deleting" if action == "DELETE" else "in_progress"
        properties = {"id": stack_id, "name": name, "region": region, "action": action, "status": status, "outputs": {}}
        return Observation(Presence.PRESENT, handle_of(region, stack_id), properties, time.time())

    # -- both --------------------------------------------------------------------------------------------------------

    def _region(self, name: str) -> Region:
        """Return the region with this name.

        Raises:
            Terminal: The region is unknown.
        """
        region = self._regions.by_name.get(name)
        if region is None:
            known = ", ".join(sorted(self._regions.by_name)) or "none"
            raise Terminal(f"region {name} is not known here (known: {known}); the operator adds it with --region")
        return region

    def _request(self, region: Region, method: str, path: str, **more: Any) -> Wire:
        return self._regions.request(region, self._project, method, path, **more)

    def watch(self, stop: Callable[[], bool]) -> Iterator[ChangeNotice]:
        """Yield nothing: regions send no notices."""
        return iter(())

    def close(self) -> None:
        """Do nothing: the connections belong to `Regions`."""


def _named(name: str, stacks: Sequence[tuple[str, Wire]]) -> str | None:
    """Return the handle of the stack with this handle, id or name; None if absent.

    Raises:
        Rejected: Several stacks have the name.
    """
    by_id = [handle for region, entry in stacks if name in ((handle := handle_of(region, entry["id"])), entry["id"])]
    handles = by_id or [handle_of(region, entry["id"]) for region, entry in stacks if entry["stack_name"] == name]
    if len(handles) > 1:
        raise ambiguous(name)
    return handles[0] if handles else None


def handle_of(region: str, stack_id: str) -> str:
    return stack_id if region == OWN else f"{region}/{stack_id}"


def _not_found(answer: Observation) -> Observation:
    """Mark the answer to a deletion: a deleted stack exists for a while, so an absent stack was not found."""
    return replace(answer, not_found=not answer.present)


def _region_of(handle: str) -> str:
    return handle.rpartition("/")[0] or OWN


def _id_of(handle: str) -> str:
    return handle.rpartition("/")[2]


def _tag_of(token: str) -> str:
    return f"{TAG}{token}"


def token_of(tag: str) -> str:
    """Return the token in a tag of a stack; "" for any other tag."""
    return tag.removeprefix(TAG) if tag.startswith(TAG) and tag != OWNED else ""


def _path(entry: Wire) -> str:
    return f"stacks/{quote(entry['stack_name'], safe='')}/{entry['id']}"


def _wanted(spec: Mapping[str, Any]) -> Wire:
    body: Wire = {
        "template": spec["template"],
        "parameters": dict(spec.get("parameters") or {}),
        "files": dict(spec.get("files") or {}),
        "disable_rollback": True,
    }
    return body if spec.get("timeout_mins") is None else {**body, "timeout_mins": spec["timeout_mins"]}


def _word(action: str, status: str) -> str:
    """Return the status word for a state of a stack; a stack that was rolled back is not as desired, so it failed."""
    if action == "DELETE":
        return "deleting" if status == "IN_PROGRESS" else status.lower()
    return "failed" if (action, status) == ("ROLLBACK", "COMPLETE") else status.lower()
