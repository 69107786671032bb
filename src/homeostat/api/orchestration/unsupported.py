"""Parts of the API that clients know and this service does not have yet: each says so, and is no 404."""

from collections.abc import Callable
from typing import Any

from homeostat.api.asking import Ask
from homeostat.api.orchestration.routing import STACK, router
from homeostat.api.policy import may
from homeostat.model.errors import Rejected

ROUTER = router("not supported yet")

ROUTES = (
    ("POST", f"{STACK}/snapshots", "stacks:snapshot", "Taking a snapshot"),
    ("GET", f"{STACK}/snapshots", "stacks:list_snapshots", "Listing snapshots"),
    ("GET", f"{STACK}/snapshots/{{snapshot_id}}", "stacks:show_snapshot", "Showing a snapshot"),
    ("DELETE", f"{STACK}/snapshots/{{snapshot_id}}", "stacks:delete_snapshot", "Deleting a snapshot"),
    ("POST", f"{STACK}/snapshots/{{snapshot_id}}/restore", "stacks:restore_snapshot", "Restoring a snapshot"),
)


def _refusal(feature: str) -> Callable[[Any], None]:
    def refuse(ask: Ask) -> None:
        raise Rejected("NotSupported", f"{feature} is not supported.")

    return refuse


for _method, _path, _rule, _feature in ROUTES:
    ROUTER.add_api_route(
        _path,
        _refusal(_feature),
        methods=[_method],
        dependencies=[may(_rule)],
        summary=f"{_feature} (not supported yet)",
        operation_id=f"{_method.lower()}_{_feature.lower().replace(' ', '_')}",
    )
