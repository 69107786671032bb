"""What the answer to a fence says of the host of what was cut off. Pure."""

from homeostat.model.intent import FENCE
from homeostat.model.node_health import DeclaredHost
from homeostat.model.observed import Observation
from homeostat.model.plan import Step


def declared_by(step: Step, seen: Observation | None) -> DeclaredHost | None:
    """Return the host by which the thing of a step is cut off, where that is declared down; None for any other answer.

    Args:
        step: The step.
        seen: What its answer has shown of the thing; None for nothing.
    """
    if step.operation != FENCE or seen is None or not seen.present or not seen.properties.get("declared_down"):
        return None
    row = step.row
    # The mark says what was found of it, the row only that it is cut off.
    mark = row.marks.unhealthy if row.marks is not None else None
    return DeclaredHost(
        str(seen.properties["declared_down"]), row.name, mark.reason if mark is not None else row.reason
    )
