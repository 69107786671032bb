"""Parts of the API that clients know and this service does not have yet: each says so, and is no 404."""

from collections.abc import Callable
from typing import Any

from homeostat.api.asking import Ask
from homeostat.api.orchestration.routing import STACK, router
from homeostat.model.errors import Rejected

ROUTER = router("not supported yet")

ROUTES = (
    ("DELETE", f"{STACK}/abandon", "Stack Abandon"),
    ("GET", f"{STACK}/export", "Stack Export"),
    ("PATCH", f"{STACK}/resources/{{resource_name}}", "Marking a resource unhealthy"),
    ("POST", f"{STACK}/snapshots", "Taking a snapshot"),
    ("GET", f"{STACK}/snapshots", "Listing snapshots"),
    ("GET", f"{STACK}/snapshots/{{snapshot_id}}", "Showing a snapshot"),
    ("DELETE", f"{STACK}/snapshots/{{snapshot_id}}", "Deleting a snapshot"),
    ("POST", f"{STACK}/snapshots/{{snapshot_id}}/restore", "Restoring a snapshot"),
)


def _refusal(feature: str) -> Callable[[Any], None]:
    def refuse(ask: Ask) -> None:
        raise Rejected("NotSupported", f"{feature} is not supported.")

    return refuse


for _method, _path, _feature in ROUTES:
    ROUTER.add_api_route(
        _path,
        _refusal(_feature),
        methods=[_method],
        summary=f"{_feature} (not supported yet)",
        operation_id=f"{_method.lower()}_{_feature.lower().replace(' ', '_')}",
    )
