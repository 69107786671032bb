"""Why a resource is not at rest: what it waits for, since when, and what would release it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from homeostat.cli.tree import requirements
from homeostat.cli.views import FAILED, Key, ResourceView, Snapshot, lasting


@dataclass(frozen=True, slots=True)
class Explanation:
    """About one resource. waiting_s — since when, None when nobody knows; seen — what was last seen of the thing."""

    name: str
    type: str
    state: str
    waiting_s: float | None
    waits_for: str
    seen: str
    released_by: str


def explain(snapshot: Snapshot, now: float, only: str | None = None) -> list[Explanation]:
    """Of every resource that is not at rest, those that others wait for first; `only` — a name, at rest or not."""
    resources = snapshot.resources
    wanted = [each for each in resources if (each.name == only if only else not each.at_rest)]
    needs = requirements(resources)
    by_key = {each.key: each for each in resources}
    told = [_explained(snapshot, each, _blockers(by_key, needs, each), now) for each in wanted]
    return [found for _, found in sorted(told, key=lambda pair: pair[0])]


def _blockers(
    resources: Mapping[Key, ResourceView], needs: Mapping[Key, tuple[Key, ...]], resource: ResourceView
) -> Sequence[ResourceView]:
    """Requirements that are not at rest themselves."""
    return [resources[key] for key in needs.get(resource.key, ()) if key in resources and not resources[key].at_rest]


def _explained(
    snapshot: Snapshot, resource: ResourceView, blockers: Sequence[ResourceView], now: float
) -> tuple[int, Explanation]:
    """The explanation, after its rank among others."""
    rank, waits_for, released_by = _verdict(snapshot, resource, blockers)
    waiting_s = None if resource.since is None else max(0.0, now - resource.since)
    seen = _seen(resource, now)
    return rank, Explanation(resource.name, resource.type, resource.state, waiting_s, waits_for, seen, released_by)


def _verdict(snapshot: Snapshot, resource: ResourceView, blockers: Sequence[ResourceView]) -> tuple[int, str, str]:
    """Rank, what it waits for, what would release it."""
    if resource.status == FAILED:
        reason = resource.reason or "no reason was given"
        return 0, f"you, because {reason}", f"mending the cause, then `homeostat up` with {snapshot.name} again"
    if resource.at_rest:
        return 4, "nothing: it is at rest", "nothing is needed"
    if resource.begins and blockers:
        names = ", ".join(f"{each.name} ({each.state})" for each in blockers)
        failed = [each.name for each in blockers if each.status == FAILED]
        release = f"mending {', '.join(failed)}" if failed else f"{_listed(blockers)} coming to rest"
        return 2, names, release
    if resource.begins and snapshot.at_rest:
        return 3, f"the stack, which is {snapshot.stack['stack_status']}", f"`homeostat up` with {snapshot.name} again"
    if resource.begins:
        return 3, "its turn: nothing holds it", "a worker taking it up, usually within a second"
    doing = resource.waiting or f"its {resource.action.lower()} to be carried out"
    return 1, doing, _release(resource)


def _release(resource: ResourceView) -> str:
    if resource.nested:
        return "the resources of its nested stack coming to rest"
    if resource.action == "DELETE":
        return f"the cloud saying that {resource.handle or 'it'} is gone"
    return "the cloud showing it as wanted; the service looks again every second"


def _listed(blockers: Sequence[ResourceView]) -> str:
    return ", ".join(each.name for each in blockers)


def _seen(resource: ResourceView, now: float) -> str:
    """A look that brings nothing new is not recorded."""
    if not resource.presence:
        return ""
    since = "" if resource.seen_at is None else f"; nothing new for {lasting(now - resource.seen_at)}"
    return f"{resource.presence}{f', {resource.seen}' if resource.seen else ''}{since}"
