"""Routes for software configs and their deployments to servers, created by stacks or by requests."""

import uuid
from collections.abc import Iterator, Sequence
from typing import Annotated

from fastapi import Path, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from homeostat.api.access.enforcer import forbidden
from homeostat.api.access.policy import may
from homeostat.api.context import Context, RequestContext
from homeostat.api.http.bodies import Read, described_body
from homeostat.api.http.inputs import COUNT_MAX, Body, Flag
from homeostat.api.http.responses import Json, json_stream, nothing
from homeostat.api.orchestration.models.configs import (
    NewSoftwareConfig,
    NewSoftwareDeployment,
    ServerMetadata,
    ShownSoftwareConfig,
    ShownSoftwareDeployment,
    SoftwareConfigItem,
    SoftwareConfigs,
    SoftwareDeployment,
    SoftwareDeploymentChanges,
    SoftwareDeployments,
)
from homeostat.api.orchestration.routes import answers, router
from homeostat.api.orchestration.views import Wire, at
from homeostat.builtin import access_keys
from homeostat.builtin.kinds.deployments import deployed, end_deployment
from homeostat.builtin.signals import wire_config
from homeostat.json_pieces import Items
from homeostat.model.errors import Rejected
from homeostat.model.limits import CONFIGS, DEPLOYMENTS
from homeostat.model.status import Status
from homeostat.resources.families import deployments
from homeostat.resources.families.configs import CONFIG, from_request
from homeostat.resources.families.deployments import DEPLOYMENT
from homeostat.store.builtin import records
from homeostat.store.builtin.records import Owner, Record
from homeostat.store.database import Transaction
from homeostat.store.schema import json_size

ROUTER = router("software configs")
READ_MAX = 20
"""Records that a list reads at once: each may be as large as a body."""
ConfigId = Annotated[str, Path(description="Id of the config.")]
DeploymentId = Annotated[str, Path(description="Id of the deployment.")]


class ConfigQuery(BaseModel):
    limit: int | None = Field(None, ge=0, le=COUNT_MAX, description="Length of a page; 0 for all.")
    marker: str = Field("", description="Id of the last config of the page before.")
    global_tenant: Flag = Field(
        False, description="List the configs of all projects; needs the rule software_configs:global_index."
    )


# -- configs -----------------------------------------------------------------------------------------------------------


@ROUTER.get(
    "/software_configs",
    dependencies=[may("software_configs:index")],
    summary="List software configs",
    responses=answers(SoftwareConfigs),
)
def list_configs(context: Context, query: Annotated[ConfigQuery, Query()]) -> Response:
    """List the configs in order of creation, including those derived for deployments."""
    if query.global_tenant:
        context.check("software_configs:global_index")
    project = None if query.global_tenant else context.listed_project
    configs = _records(context, CONFIG, project, query.marker, query.limit or COUNT_MAX)
    return json_stream({"software_configs": Items(_config_item(config, project) for config in configs)})


def _records(
    context: RequestContext, kind: str, project: str | None, after: str = "", limit: int = COUNT_MAX
) -> Iterator[Record]:
    """Yield records, the oldest first, read some at a time."""
    while limit > 0:
        count = min(limit, READ_MAX)
        with context.db.read() as tx:
            page = records.listed(tx, kind, project, after=after, limit=count)
        yield from page
        limit = limit - len(page) if len(page) == count else 0
        after = page[-1].id if page else ""


@ROUTER.post(
    "/software_configs",
    dependencies=[may("software_configs:create")],
    summary="Create a software config",
    responses=answers(ShownSoftwareConfig),
    openapi_extra=described_body(NewSoftwareConfig),
)
def create_config(context: Context, body: Body) -> Response:
    config = _record(context, CONFIG, from_request(body))
    _add(context, config)
    return Json({"software_config": wire_config(config)})


@ROUTER.get(
    "/software_configs/{config_id}",
    dependencies=[may("software_configs:show")],
    summary="Show a software config",
    responses=answers(ShownSoftwareConfig),
)
def show_config(context: Context, config_id: ConfigId) -> Response:
    with context.db.read() as tx:
        return Json({"software_config": wire_config(_stored(tx, context, CONFIG, config_id))})


@ROUTER.delete(
    "/software_configs/{config_id}",
    dependencies=[may("software_configs:delete")],
    summary="Delete a software config",
    responses=answers(None, code=204),
    status_code=204,
)
def delete_config(context: Context, config_id: ConfigId) -> Response:
    """Delete a config. This is refused while a deployment uses it."""
    with context.db.write() as tx:
        project = _stored(tx, context, CONFIG, config_id).project
        users = [
            deployment.id for deployment in records.listed(tx, DEPLOYMENT, project) if _refers(deployment, config_id)
        ]
        if users:
            message = f"The config {config_id} cannot be deleted: it is used by deployment {', '.join(users)}"
            raise Rejected("HTTPBadRequest", message)
        records.remove(tx, [config_id])
    return nothing()


def _refers(deployment: Record, config_id: str) -> bool:
    wanted = deployment.object.get("spec") or {}
    return config_id in (deployment.object.get("config_id"), wanted.get("config"))


# -- deployments -------------------------------------------------------------------------------------------------------


@ROUTER.get(
    "/software_deployments",
    dependencies=[may("software_deployments:index")],
    summary="List software deployments",
    responses=answers(SoftwareDeployments),
)
def list_deployments(
    context: Context, server_id: Annotated[str | None, Query(description="Only deployments to this server.")] = None
) -> Response:
    return json_stream({"software_deployments": Items(_all_deployments(context, server_id))})


def _all_deployments(context: RequestContext, server_id: str | None) -> Iterator[SoftwareDeployment]:
    limit, after = READ_MAX, ""
    while limit == READ_MAX:
        with context.db.read() as tx:
            page = records.listed(tx, DEPLOYMENT, context.listed_project, link=server_id, after=after, limit=READ_MAX)
            items = _deployments(tx, page)
        yield from items
        limit, after = len(page), page[-1].id if page else ""


@ROUTER.post(
    "/software_deployments",
    dependencies=[may("software_deployments:create")],
    summary="Create a software deployment",
    responses=answers(ShownSoftwareDeployment),
)
def create_deployment(context: Context, body: Read[NewSoftwareDeployment]) -> Response:
    """Create a deployment. The server sees it in its metadata at once."""
    object = {"name": "", "input_values": {}, "output_values": {}, "action": "INIT", "status": deployments.COMPLETE}
    object |= {"status_reason": "", **body.values()}
    deployment = _record(context, DEPLOYMENT, object, body.server_id)
    _add(context, deployment)
    return Json({"software_deployment": _deployment(deployment, None)})


@ROUTER.get(
    "/software_deployments/metadata/{server_id}",
    dependencies=[may("software_deployments:metadata")],
    summary="List the configs that a server is to apply",
    responses=answers(ServerMetadata),
)
def show_server_metadata(
    context: Context, server_id: Annotated[str, Path(description="Id of the server.")]
) -> Response:
    with context.db.read() as tx:
        project = _project_of(tx, context, server_id)
        return Json({"metadata": [wire_config(config) for config in deployed(tx, project, server_id)]})


def _project_of(tx: Transaction, context: RequestContext, server_id: str) -> str:
    """Return the project that has a server's configs.

    Raises:
        Rejected: Forbidden for a stack user other than the server's own.
    """
    if not context.caller.is_stack_user:
        return context.project
    holder = access_keys.holder_of_user(tx, context.caller.user_id or "")
    if holder is None or holder.owner.handle != server_id:
        raise forbidden(server_id)
    return holder.owner.project


@ROUTER.get(
    "/software_deployments/{deployment_id}",
    dependencies=[may("software_deployments:show")],
    summary="Show a software deployment",
    responses=answers(ShownSoftwareDeployment),
)
def show_deployment(context: Context, deployment_id: DeploymentId) -> Response:
    with context.db.read() as tx:
        (view,) = _deployments(tx, [_stored(tx, context, DEPLOYMENT, deployment_id)])
    return Json({"software_deployment": view})


@ROUTER.put(
    "/software_deployments/{deployment_id}",
    dependencies=[may("software_deployments:update")],
    summary="Update a software deployment",
    responses=answers(ShownSoftwareDeployment),
)
def update_deployment(context: Context, deployment_id: DeploymentId, body: Read[SoftwareDeploymentChanges]) -> Response:
    """Update the fields that are given and not null.

    If the deployment belongs to a stack, its resource reacts to the new status.
    """
    values = body.values()
    with context.db.write() as tx:
        # Locked before it is read: a signal of the server may change the deployment at the same time.
        records.for_update(tx, deployment_id)
        deployment = _stored(tx, context, DEPLOYMENT, deployment_id)
        if values.get("config_id"):
            _stored(tx, context, CONFIG, values["config_id"])
        now = tx.now()
        before = json_size(deployment.object)
        deployment.object |= values
        _check_room(tx, deployment, json_size(deployment.object) - before, 0)
        records.save(tx, deployment, now)
        context.service.signals.inbox.look(tx, [deployment], now)
        (view,) = _deployments(tx, [deployment])
    return Json({"software_deployment": view})


@ROUTER.delete(
    "/software_deployments/{deployment_id}",
    dependencies=[may("software_deployments:delete")],
    summary="Delete a software deployment",
    responses=answers(None, code=204),
    status_code=204,
)
def delete_deployment(context: Context, deployment_id: DeploymentId) -> Response:
    """Delete a deployment. If it belongs to a stack, the stack creates it again, like any missing resource."""
    with context.db.write() as tx:
        records.for_update(tx, deployment_id)
        deployment = _stored(tx, context, DEPLOYMENT, deployment_id)
        if records.key_of(deployment.token):
            end_deployment(tx, deployment)
        else:
            records.remove(tx, [deployment.id])
        context.service.signals.inbox.look(tx, [deployment], tx.now())
    return nothing()


# -- records -----------------------------------------------------------------------------------------------------------


def _record(context: RequestContext, kind: str, object: Wire, link: str = "") -> Record:
    id = str(uuid.uuid4())
    return Record(id, kind, context.project, id, object, link)


def _add(context: RequestContext, record: Record) -> None:
    """Store a config or deployment.

    Raises:
        Rejected: RequestLimitExceeded; HTTPBadRequest for a deployment whose config does not exist.
    """
    with context.db.write() as tx:
        _check_room(tx, record, json_size(record.object), 1)
        config_id = record.object.get("config_id")
        if config_id and records.get(tx, config_id, CONFIG, record.project) is None:
            raise Rejected("HTTPBadRequest", f"config_id: the Software Config ({config_id}) could not be found.")
        record.created_at = tx.now()
        records.add(tx, [record])


def _check_room(tx: Transaction, record: Record, more: int, parts: int) -> None:
    """Check that the project may store `more` bytes and `parts` records. Raise Rejected (RequestLimitExceeded)."""
    count = records.count(tx, record.kind, record.project) if parts else 0
    size = records.total_size(tx, record.kind, record.project) if more > 0 else 0
    LIMITS[record.kind].check(count, size, more, parts)


LIMITS = {CONFIG: CONFIGS, DEPLOYMENT: DEPLOYMENTS}
NAMES = {CONFIG: "Software Config", DEPLOYMENT: "Software Deployment"}


def _stored(tx: Transaction, context: RequestContext, kind: str, id: str) -> Record:
    record = records.get(tx, id, kind, "" if context.caller.is_admin else context.project)
    if record is None:
        raise Rejected("EntityNotFound", f"The {NAMES[kind]} ({id}) could not be found.")
    return record


def _config_item(record: Record, project: str | None) -> SoftwareConfigItem:
    """Build a list item; it names the project when all projects are listed."""
    config = record.object
    view: SoftwareConfigItem = {
        "id": record.id,
        "name": config["name"],
        "group": config["group"],
        "creation_time": at(record.created_at),
    }
    if project is None:
        view["project"] = record.project
    return view


def _deployments(tx: Transaction, deployment_records: Sequence[Record]) -> list[SoftwareDeployment]:
    waiting = [record for record in deployment_records if record.object.get("status") == deployments.IN_PROGRESS]
    keys = {record.id: records.key_of(record.token) for record in waiting}
    owners = records.owners(tx, keys.values())
    return [_deployment(record, owners.get(keys.get(record.id, ""))) for record in deployment_records]


def _deployment(record: Record, owner: Owner | None) -> SoftwareDeployment:
    """Build the response for a deployment.

    Args:
        owner: The resource; None if the deployment does not wait, or belongs to no stack.
    """
    deployment = record.object
    view: SoftwareDeployment = {
        "id": record.id,
        "server_id": deployment["server_id"],
        "config_id": deployment.get("config_id"),
        "input_values": deployment.get("input_values"),
        "output_values": deployment.get("output_values"),
        "action": deployment.get("action"),
        "status": deployment.get("status"),
        "status_reason": deployment.get("status_reason"),
        "creation_time": at(record.created_at),
        "updated_time": at(record.updated_at),
    }
    # The resource may fail while its deployment still waits for the server's outputs, for instance by a time-out.
    if owner is not None and owner.status == Status.FAILED:
        view |= {"status": deployments.FAILED, "status_reason": owner.reason}
    return view
