"""What is counted while the service works: one call a batch, and nothing where `prometheus_client` is not installed.

`prometheus` has the meters themselves and shows them.
"""

from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from homeostat.clouds.port import Answer
from homeostat.model.errors import HomeostatError
from homeostat.model.plan import Verb

if TYPE_CHECKING:
    from homeostat.observability.prometheus import Meters

AVAILABLE = find_spec("prometheus_client") is not None
_CHANGING = frozenset({Verb.CREATE, Verb.UPDATE, Verb.OPERATE})


def _meters() -> "Meters | None":
    if not AVAILABLE:
        return None
    from homeostat.observability.prometheus import METERS

    return METERS


_METERS = _meters()


def claimed() -> None:
    """A worker has taken a shard."""
    if _METERS is not None:
        _METERS.claims.inc()


def passed(outcome: str) -> None:
    """A pass has ended. outcome — done, superseded, transient or bug."""
    if _METERS is not None:
        _METERS.passes.labels(outcome).inc()


def acted(verb: Verb, kind: str, answers: Sequence[Answer], spent_s: float, *, healing: bool) -> None:
    """A batch of steps was performed. kind — empty for what lives in the service alone; healing — nobody has asked for
    these steps, their stack was at rest."""
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
    """An observer has asked for so many things. outcome — ok, transient, or bug where the adapter failed."""
    if _METERS is None:
        return
    _METERS.call_s.labels("observe", kind).observe(spent_s)
    _METERS.answers.labels("observe", kind, outcome).inc(count)
    if outcome == "ok":
        _METERS.observations.labels(kind).inc(count)


def drifted(count: int) -> None:
    """So many things that were at rest are not as they were."""
    if _METERS is not None and count:
        _METERS.drifts.inc(count)


def swept(removed: int) -> None:
    """A look for what late requests have made has removed so many things."""
    if _METERS is not None:
        _METERS.sweeps.inc()
        _METERS.swept.inc(removed)


def told(kind: str, count: int) -> None:
    """A sink of this kind was told of so many events."""
    if _METERS is not None and count:
        _METERS.told.labels(kind).inc(count)


def not_told(kind: str, lost: int) -> None:
    """A sink could not be told; so many events were given up."""
    if _METERS is not None:
        _METERS.not_told.labels(kind).inc()
        _METERS.given_up.labels(kind).inc(lost)


def _outcome(answer: Answer) -> str:
    return type(answer).__name__.lower() if isinstance(answer, HomeostatError) else "ok"
