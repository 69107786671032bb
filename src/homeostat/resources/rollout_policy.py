"""Rollouts as templates describe them: a property of groups, and a section of their update policy."""

from collections.abc import Mapping
from typing import Any

from homeostat.model.errors import invalid
from homeostat.model.rollout import (
    CANARY,
    CANARY_STEPS,
    IMMEDIATE,
    PATTERNS,
    WAITED_FOR_MAX,
    AppliesTo,
    MemberOrder,
    OnFailure,
    RolloutSettings,
)
from homeostat.resources.base import Props
from homeostat.resources.graph import Graph
from homeostat.resources.group_limits import AMOUNT
from homeostat.resources.schema import (
    Property,
    Schema,
    between,
    boolean,
    integer,
    length,
    listing,
    mapping,
    number,
    one_of,
    text,
    with_defaults,
)

ROLLOUT = "rollout"
"""Section of the update policy about giving members new metadata, or a new definition."""
STEPS_MAX = 100
GATES_MAX, URL_MAX = 10, 2000
DAY_S = 86_400


def pattern_property(name: str) -> dict[str, Property]:
    """Return the property, under the name used by its type, for the order in which members get new metadata."""
    described = "How members get new metadata of the group: all at once, one by one, or in growing steps."
    return {name: text(described, default=IMMEDIATE, update=True, constraints=(one_of(*PATTERNS),))}


FIELDS: Schema = {
    "applies_to": text(
        "What members get step by step: new metadata of the group, a new definition, or both.",
        default=AppliesTo.METADATA,
        constraints=(one_of(*AppliesTo),),
    ),
    "steps": listing(
        "Members that have the new metadata after each step: numbers, or shares such as 5%.",
        items=text(),
        constraints=(length(0, STEPS_MAX),),
    ),
    "bake_time": number("Seconds to wait once a step has reported.", default=0, constraints=(between(0, DAY_S),)),
    "progress_deadline": number(
        "Seconds in which the members of a step have to report.", constraints=(between(1, DAY_S),)
    ),
    "min_success_percent": number(
        "Share of a step that has to report success by then.", default=100, constraints=(between(0, 100),)
    ),
    "max_failures": integer("Members in all that may fail.", default=0, constraints=(between(0),)),
    "max_failures_per_step": integer("Members of one step that may fail.", constraints=(between(0),)),
    "on_failure": text(
        "What to do when more fail: bring all back, wait for a person, or stop.",
        default=OnFailure.ROLLBACK,
        constraints=(one_of(*OnFailure),),
    ),
    "approval": boolean("Let a person approve each step before the next one.", default=False),
    "order": text("Order of the members.", default=MemberOrder.NUMBER, constraints=(one_of(*MemberOrder),)),
    "seed": integer("Seed of a random order.", default=0),
    "alarms": listing(
        "Names of wait condition handles of the template to which alarms are sent: one that fires says no.",
        items=text(),
        constraints=(length(0, GATES_MAX),),
    ),
    "checks": listing(
        "URLs that have to answer with a success; an answer of 400 to 499 says no.",
        items=text(constraints=(length(1, URL_MAX),)),
        constraints=(length(0, GATES_MAX),),
    ),
}
"""Fields of the section."""


def rollout_section() -> dict[str, Property]:
    """Return the section of the update policy about rollouts."""
    return {ROLLOUT: mapping("When a rollout goes on, and when it stops.", fields=FIELDS)}


def applies_to(policy: Props) -> str:
    """Return the subject of a rollout (see `AppliesTo`) from the section `update_policy`, with or without defaults."""
    return str((policy.get(ROLLOUT) or {}).get("applies_to") or AppliesTo.METADATA)


def check_definitions(pattern: str, provided: Props, policy: Props, other: str, path: tuple[str | int, ...]) -> None:
    """Check that a rollout of definitions is the only setting about how members get a new definition.

    Args:
        pattern: Name of the property with the rollout pattern.
        provided: Properties of the group.
        policy: Its section `update_policy`.
        other: Name of a conflicting setting in the template; "" for none.

    Raises:
        Rejected: Members would be changed all at once, or in two orders.
    """
    wanted = applies_to(policy)
    if wanted == AppliesTo.METADATA:
        return
    where = (*path, ROLLOUT, "applies_to")
    if provided.get(pattern) in (None, IMMEDIATE):
        steps = " or ".join(word for word in PATTERNS if word != IMMEDIATE)
        message = f"{wanted} needs steps: set {pattern} to {steps}, which holds for the definition as well"
        raise invalid(message, *where, error="Property error")
    if other:
        message = (
            f"{other} says how members get a new definition, and so does this rollout: leave {other} out to have the "
            f"steps and gates of the rollout, or let the rollout apply to {AppliesTo.METADATA} to have batches"
        )
        raise invalid(message, *where, error="Property error")


def refuse_definitions(policy: Props, path: tuple[str | int, ...]) -> None:
    """Refuse a rollout of definitions for a type that is changed as a whole.

    Raises:
        Rejected: The rollout applies to the definition of members.
    """
    if applies_to(policy) != AppliesTo.METADATA:
        message = f"the members of a chain are changed one after the other: use {AppliesTo.METADATA}, or a group"
        raise invalid(message, *path, ROLLOUT, "applies_to", error="Property error")


def settings_of(pattern: str, provided: Props | None) -> RolloutSettings:
    """Return the settings of a rollout.

    Args:
        pattern: An item of `model.rollout.PATTERNS`.
        provided: The section, which was checked; None if absent.
    """
    section = with_defaults(FIELDS, provided or {})
    per_step, seconds = section["max_failures_per_step"], section["progress_deadline"]
    return RolloutSettings(
        pattern,
        tuple(section["steps"] or (CANARY_STEPS if pattern == CANARY else ())),
        float(section["bake_time"]),
        None if seconds is None else float(seconds),
        float(section["min_success_percent"]) / 100,
        int(section["max_failures"]),
        None if per_step is None else int(per_step),
        str(section["on_failure"]),
        bool(section["approval"]),
        str(section["order"]),
        int(section["seed"]),
        checks=tuple(section["checks"] or ()),
        applies_to=str(section["applies_to"]),
    )


def check_alarms(policy: Mapping[str, Any], graph: Graph, path: tuple[str | int, ...]) -> None:
    """Check that the handles for alarms about a rollout are in the template.

    Raises:
        Rejected: A handle is missing, or is another kind of resource.
    """
    for index, name in enumerate((policy.get(ROLLOUT) or {}).get("alarms") or ()):
        if name not in graph or not graph[name][0].endswith("Handle"):
            message = f"{name!r} is no wait condition handle of this template: give the name of one"
            raise invalid(message, *path, ROLLOUT, "alarms", index, error="Property error")


def check_rollout(section: Any, path: tuple[str | int, ...]) -> None:
    """Check the steps and the URLs of a rollout.

    Raises:
        Rejected: A step is neither a number nor a share, or a URL is invalid.
    """
    for index, url in enumerate((section or {}).get("checks") or ()):
        if isinstance(url, str) and not url.startswith(("http://", "https://")):
            message = f"{url!r} is no http or https URL"
            raise invalid(message, *path, ROLLOUT, "checks", index, error="Property error")
    for index, step in enumerate((section or {}).get("steps") or ()):
        if not (isinstance(step, str) and AMOUNT.fullmatch(step)):
            message = f"{step!r} is no step of a rollout: give a number of members such as 10, or a share such as 5%"
            raise invalid(message, *path, ROLLOUT, "steps", index, error="Property error")


def asked_urls(policy: Any, path: tuple[str | int, ...]) -> dict[str, tuple[str | int, ...]]:
    """Return the known URLs that a rollout checks, with their paths, for a check whether the service may call them.

    Args:
        policy: The section `update_policy`, which was checked.
    """
    section = policy.get(ROLLOUT) if isinstance(policy, Mapping) else None
    urls = section.get("checks") if isinstance(section, Mapping) else None
    listed = enumerate(urls if isinstance(urls, list | tuple) else ())
    return {url: (*path, ROLLOUT, "checks", index) for index, url in listed if isinstance(url, str)}


def check_waited_for(pattern: str, provided: Props, count: int, path: tuple[str | int, ...]) -> None:
    """Check that not too many wait conditions depend on a group whose members get new metadata in a rollout.

    Args:
        pattern: Name of the property with the rollout pattern.
        provided: Properties of the group.
        count: Number of wait conditions.

    Raises:
        Rejected: There are too many.
    """
    if provided.get(pattern) not in (None, IMMEDIATE):
        message = (
            f"{count} wait conditions depend on this group: in a rollout at most {WAITED_FOR_MAX} can be waited for, "
            f"so let fewer depend on it, or leave the pattern {IMMEDIATE}"
        )
        raise invalid(message, *path, pattern, error="Property error")
