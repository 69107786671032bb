"""Routes for snapshots of a stack: take, list, show, delete, restore."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, cast

from fastapi import Path
from pydantic import Field
from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.context import HEAVY, Context, RequestContext, StackId, StackName
from homeostat.api.http.bodies import Fault, Read, RequestBody
from homeostat.api.http.faults import documented
from homeostat.api.http.responses import Json, json_stream, nothing
from homeostat.api.orchestration.models.stacks import Exported, ShownSnapshot, Snapshot, Snapshots
from homeostat.api.orchestration.revision_text import environment_of, template_of
from homeostat.api.orchestration.routes import STACK, answers, router
from homeostat.api.orchestration.views import at
from homeostat.json_pieces import Items
from homeostat.model.status import Action, Status
from homeostat.services.snapshots import not_found
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import SnapshotRow, StackRow
from homeostat.store.stacks import snapshots

ROUTER = router("snapshots")
SnapshotId = Annotated[str, Path(description="Id of the snapshot.")]
ONE = f"{STACK}/snapshots/{{snapshot_id}}"
NAME_MAX = 255


class SnapshotRequest(RequestBody, extra="ignore"):
    name: Annotated[
        str | None,
        Field(description="Name of the snapshot; need not be unique.", max_length=NAME_MAX),
        Fault(f"a text of at most {NAME_MAX} characters is needed", ", got {input}"),
    ] = None


@ROUTER.post(
    f"{STACK}/snapshots",
    dependencies=[may("stacks:snapshot")],
    summary="Take a snapshot of a stack",
    responses=answers(Snapshot, "Accepted; the snapshot is being taken.") | documented(409),
)
def take_snapshot(context: Context, stack_name: StackName, stack_id: StackId, body: Read[SnapshotRequest]) -> Response:
    """Take a snapshot of a stack that is at rest.

    The snapshot includes the data of servers and volumes, also in nested stacks.
    """
    with context.db.read() as tx:
        context.live_stack(tx, stack_name, stack_id)
    row = context.service.snapshots.take(stack_id, body.name, unlimited=context.caller.is_admin)
    return Json(_shown(row, None))


@ROUTER.get(
    f"{STACK}/snapshots",
    dependencies=[may("stacks:list_snapshots")],
    summary="List the snapshots of a stack",
    responses=answers(Snapshots),
)
def list_snapshots(context: Context, stack_name: StackName, stack_id: StackId) -> Response:
    """List the snapshots, oldest first."""
    with context.db.read() as tx:
        stack = context.live_stack(tx, stack_name, stack_id)
        ids = snapshots.ids(tx, stack_id)
    return json_stream({"snapshots": Items(_all(context, stack, ids))})


def _all(context: RequestContext, stack: StackRow, ids: Sequence[str]) -> Iterator[Snapshot]:
    """Yield snapshots, each read just before it is sent; snapshots that are deleted meanwhile are left out."""
    for id in ids:
        with context.db.read() as tx:
            row = snapshots.get(tx, stack.id, id)
            view = None if row is None else _rendered(context, tx, stack, row)
        if view is not None:
            yield view


@ROUTER.get(
    ONE,
    dependencies=[may("stacks:show_snapshot")],
    summary="Show a snapshot",
    responses=answers(ShownSnapshot),
)
def show_snapshot(context: Context, stack_name: StackName, stack_id: StackId, snapshot_id: SnapshotId) -> Response:
    with context.db.read() as tx:
        stack = context.live_stack(tx, stack_name, stack_id)
        row = snapshots.get(tx, stack_id, snapshot_id)
        if row is None:
            raise not_found(snapshot_id)
        body = _rendered(context, tx, stack, row)
    return Json({"snapshot": body})


@ROUTER.delete(
    ONE,
    dependencies=[may("stacks:delete_snapshot")],
    summary="Delete a snapshot",
    status_code=204,
    responses=answers(None, "Accepted; the snapshot is being deleted.", 204),
)
def delete_snapshot(context: Context, stack_name: StackName, stack_id: StackId, snapshot_id: SnapshotId) -> Response:
    """Delete a snapshot and its data in the cloud. The snapshot is listed until its data is gone."""
    with context.db.read() as tx:
        context.live_stack(tx, stack_name, stack_id)
    context.service.snapshots.delete(stack_id, snapshot_id)
    return nothing()


@ROUTER.post(
    f"{ONE}/restore",
    dependencies=[may("stacks:restore_snapshot"), HEAVY],
    summary="Restore a snapshot",
    status_code=202,
    response_class=Response,
    responses=answers(None, "Accepted; the stack goes back to the snapshot.", 202) | documented(409),
)
def restore_snapshot(context: Context, stack_name: StackName, stack_id: StackId, snapshot_id: SnapshotId) -> Response:
    """Return the stack to the snapshot: template, parameters, environment, files, and the data of servers and volumes.

    Resources that were added since are deleted.
    """
    with context.db.read() as tx:
        context.check_types_of(tx, context.live_stack(tx, stack_name, stack_id))
    with context.entrusted(stack_id) as accept:
        context.service.snapshots.restore(stack_id, snapshot_id, context.check_types, accept)
    return nothing(202)


def _shown(row: SnapshotRow, data: Exported | None) -> Snapshot:
    return {
        "id": row.id,
        "name": row.name,
        "action": row.action,
        "status": row.status,
        "status_reason": row.reason,
        "creation_time": at(row.created_at),
        "data": data,
    }


def _rendered(context: RequestContext, tx: Transaction, stack: StackRow, row: SnapshotRow) -> Snapshot:
    """Build the snapshot, with its data if complete; hidden values are redacted."""
    if row.data is None:
        return _shown(row, None)
    graph = context.service.graphs.of_revision(tx, stack, int(row.revision))
    data: dict[str, Any] = {
        "name": stack.name,
        "id": stack.id,
        "action": Action.SNAPSHOT,
        "status": Status.COMPLETE,
        "project_id": stack.project,
        "stack_user_project_id": stack.user_project or stack.project,
        "tags": stack.tags,
        "environment": environment_of(graph),
        "files": dict(graph.content.files),
        "template": template_of(graph),
        **row.data,
    }
    return _shown(row, cast(Exported, data))
