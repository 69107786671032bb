"""Routes for events of clusters and nodes."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from fastapi import Request
from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.clustering.decisions.profiles import PROFILE_TYPES
from homeostat.clustering.decisions.states import ACTION_NAMES
from homeostat.clustering.store import events, listing
from homeostat.clustering.store.events import LISTED_MAX, EventQuery
from homeostat.clustering.store.listing import Page
from homeostat.clustering.wire.context import Context
from homeostat.clustering.wire.lists import ListRules, ListSource, listed, read_query
from homeostat.clustering.wire.routes import answers, router
from homeostat.model.errors import Rejected
from homeostat.model.status import Action
from homeostat.store.events import event_id
from homeostat.store.schema.rows import ClusterRow

ROUTER = router("events")
ONE = answers(dict[str, Any])
NAMES = frozenset(
    {
        *ACTION_NAMES,
        *(f"{kind}_{action}" for kind in ("CLUSTER", "NODE") for action in Action),
        *(operation for profile_type in PROFILE_TYPES.types for operation in profile_type.operations),
    }
)
"""Actions of events: actions that users request, actions of stacks, and operations, which have no prefix."""
NEWEST = ("timestamp", "level", "otype", "oname", "action", "status", "oid", "cluster_id")
LIST = ListRules(
    filters={
        "oid": None,
        "oname": None,
        "otype": ("CLUSTER", "NODE"),
        "cluster_id": None,
        "action": sorted(NAMES),
        "level": ("CRITICAL", "ERROR", "WARN", "INFO", "DEBUG"),
    },
    sortable=dict.fromkeys(NEWEST, "seq"),
    default=("seq",),
)


@ROUTER.get("/events", dependencies=[may("events:index")], summary="List events of clusters and nodes", responses=ONE)
def list_events(request: Request, context: Context) -> Response:
    """List events in the order in which they happened, or the newest first with a descending `sort`."""
    page = read_query(context, request, LIST)
    only = dict(page.only)
    with context.db.read() as tx:
        if "cluster_id" in only:
            only["cluster_id"] = listing.ids(tx, ClusterRow, page.project, only["cluster_id"])
        actions = only.pop("action", None)
        source = ListSource(
            lambda part: events.listed(tx, _query(part)),
            lambda rows: [_shown(row) for row in rows],
            # The action is computed from the event, and not a column.
            lambda event: actions is None or event["action"] in actions,
            lambda row: event_id(row["stack_id"], row["seq"]),
        )
        return listed(context, request, "events", replace(page, only=only), source)


def _query(page: Page) -> EventQuery:
    return EventQuery(page.project, page.only, _seq(page.marker), page.order[0].descending, page.limit or LISTED_MAX)


@ROUTER.get("/events/{event}", dependencies=[may("events:show")], summary="Show an event", responses=ONE)
def show_event(context: Context, event: str) -> Response:
    seq = _seq(event)
    with context.db.read() as tx:
        rows = events.listed(tx, EventQuery(context.scope.reach, seq=seq)) if seq is not None else []
    if not rows or _shown(rows[0])["id"] != event.lower():
        raise Rejected("ResourceNotFound", f"The event '{event}' could not be found.")
    return context.json({"event": _shown(rows[0])})


def _seq(identity: str | None) -> int | None:
    """Return the number of an event: the last 12 hexadecimal digits of its id; None for an invalid id."""
    try:
        return int(identity[-12:], 16) if identity is not None and len(identity) == 36 else None
    except ValueError:
        return None


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": event_id(row["stack_id"], row["seq"]),
        "timestamp": datetime.fromtimestamp(row["at"], UTC).replace(microsecond=0).isoformat(),
        "oid": row["oid"],
        "oname": row["oname"],
        "otype": row["otype"],
        "cluster_id": row["cluster_id"],
        "level": row["level"],
        "user": row["user"],
        "project": row["project"],
        "action": row["action"],
        "status": row["status"],
        "status_reason": row["reason"],
        "meta_data": {},
    }
