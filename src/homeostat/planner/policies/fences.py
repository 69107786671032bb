"""Hosts declared down by the answer to a fencing request. Pure."""

from homeostat.model.intent import FENCE
from homeostat.model.node_health import DeclaredHost
from homeostat.model.observed import Observation
from homeostat.model.plan import Operate, Step


def declared_by(step: Step, seen: Observation | None) -> DeclaredHost | None:
    """Return the host that was declared down to fence the thing of a step; None for any other answer.

    Args:
        seen: Observation in the step's answer, if any.
    """
    if seen is None or not seen.properties.get("declared_down") or not seen.present:
        return None
    if not isinstance(step.act, Operate) or step.act.operation != FENCE:
        return None
    row = step.row
    # The mark has the finding; the row's reason is only the fence.
    mark = row.marks.unhealthy if row.marks is not None else None
    return DeclaredHost(
        str(seen.properties["declared_down"]), row.name, mark.reason if mark is not None else row.reason
    )
