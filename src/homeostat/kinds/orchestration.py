"""Orchestration: stacks in regions."""

from homeostat.kinds.base import INTEGER, MAP, TEXT, Kind, Statuses, mapping
from homeostat.model.observed import Remedy

KINDS = (
    Kind(
        "remote_stack",
        "A stack in a region.",
        extra_fixed={"name": TEXT, "region": TEXT, "files": MAP},
        extra_mutable={"timeout_mins": INTEGER},
        reported={"status": TEXT, "action": TEXT, "fault": TEXT, "outputs": mapping("{name: value}")},
        statuses=Statuses(
            ready=frozenset({"complete"}), busy=frozenset({"in_progress"}), broken={"failed": Remedy.MANUAL}
        ),
        operations={
            "suspend": "",
            "resume": "",
            "validate": (
                "With {region, template, parameters, files}; creates nothing, and is Rejected if the region refuses "
                "the template."
            ),
        },
        notes=(
            "The handle of a stack in another region is `<region>/<id>`.",
            "The field `action` reports the last operation.",
        ),
    ),
)
