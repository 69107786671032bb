"""Counting while the service works: a call per batch, without effect if `prometheus_client` is missing.

The meters are in `prometheus`, which exposes them.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from homeostat.clouds.port import Answer
from homeostat.kinds.registry import KINDS
from homeostat.model.errors import HomeostatError
from homeostat.model.health_policy import Built
from homeostat.model.plan import Verb

if TYPE_CHECKING:
    from homeostat.observability.prometheus import Meters

AVAILABLE = find_spec("prometheus_client") is not None
_OWN_ACTIONS = frozenset({*(action.lower() for action in Built), *KINDS["server"].operations})
"""Operations of the service and of clouds, which are few enough for labels."""
_CHANGING = frozenset({Verb.CREATE, Verb.UPDATE, Verb.OPERATE})


def _meters() -> "Meters | None":
    if not AVAILABLE:
        return None
    from homeostat.observability.prometheus import METERS

    return METERS


_METERS = _meters()


def claimed() -> None:
    """Count a shard that this worker has claimed."""
    if _METERS is not None:
        _METERS.claims.inc()


def passed(outcome: str) -> None:
    """Count a pass that has ended; `outcome` is done, superseded, transient, bug or deadly."""
    if _METERS is not None:
        _METERS.passes.labels(outcome).inc()


def acted(verb: Verb, kind: str, answers: Sequence[Answer], spent_s: float, *, healing: bool) -> None:
    """Count an executed batch of steps.

    Args:
        verb: Verb of the steps.
        kind: Kind of the things; "" for things that exist only in the service.
        answers: An answer per step.
        spent_s: Duration of the call.
        healing: Whether the stack was at rest, so no user has requested the steps.
    """
    if _METERS is None:
        return
    _METERS.steps.labels(verb, kind or "none").inc(len(answers))
    if healing and verb in _CHANGING:
        _METERS.healings.labels(kind or "none").inc(len(answers))
    if kind:
        _METERS.call_s.labels(verb, kind).observe(spent_s)
        for outcome, count in Counter(map(_outcome, answers)).items():
            _METERS.answers.labels(verb, kind, outcome).inc(count)


def looked(kind: str, count: int, spent_s: float, outcome: str = "ok") -> None:
    """Count an observer's call about `count` things; `outcome` is ok, transient, or bug if the adapter failed."""
    if _METERS is None:
        return
    _METERS.call_s.labels("observe", kind).observe(spent_s)
    _METERS.answers.labels("observe", kind, outcome).inc(count)
    if outcome == "ok":
        _METERS.observations.labels(kind).inc(count)


def checked(members: int, spent_s: float) -> None:
    """Count a round of health checks."""
    if _METERS is not None:
        _METERS.health_round_s.observe(spent_s)
        _METERS.health_checks.inc(members)


def recovering(actions: Iterable[str]) -> None:
    """Count recovery actions that begin; all workflows and webhooks share the label `call`."""
    if _METERS is not None:
        for action in actions:
            _METERS.recoveries.labels(action.lower() if action.lower() in _OWN_ACTIONS else "call").inc()


def drifted(count: int) -> None:
    """Count things at rest that have changed since the observation before."""
    if _METERS is not None and count:
        _METERS.drifts.inc(count)


def swept(removed: int) -> None:
    """Count a sweep for things created by late requests, and the things removed."""
    if _METERS is not None:
        _METERS.sweeps.inc()
        _METERS.swept.inc(removed)


def delivered(kind: str, count: int) -> None:
    """Count events delivered to a sink of this kind."""
    if _METERS is not None and count:
        _METERS.delivered.labels(kind).inc(count)


def delivery_failed(kind: str, lost: int) -> None:
    """Count a failed delivery to a sink of this kind, and the events given up."""
    if _METERS is not None:
        _METERS.delivery_failures.labels(kind).inc()
        _METERS.given_up.labels(kind).inc(lost)


def _outcome(answer: Answer) -> str:
    return type(answer).__name__.lower() if isinstance(answer, HomeostatError) else "ok"
