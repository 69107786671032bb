"""Routes for single keys of the metadata of clusters: openstacksdk uses them, although Senlin never had them."""

from collections.abc import Callable, Mapping
from typing import Any

from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.http.inputs import Body
from homeostat.api.http.responses import nothing
from homeostat.clustering.wire import bodies
from homeostat.clustering.wire.bodies import Field, wrong
from homeostat.clustering.wire.context import ClusteringContext, Context
from homeostat.clustering.wire.routes import answers, router, takes
from homeostat.model.errors import Rejected

ROUTER = router("clusters")
ONE = answers(dict[str, Any])
PATH = "/clusters/{cluster_id}/metadata"
Metadata = Mapping[str, Any]
FIELDS = {"metadata": Field(bodies.mapping, required=True)}


@ROUTER.get(PATH, dependencies=[may("clusters:get")], summary="Show the metadata of a cluster", responses=ONE)
def show_metadata(context: Context, cluster_id: str) -> Response:
    with context.db.read() as tx:
        cluster = context.clusters.clusters.get(tx, context.scope, cluster_id)
    return context.json({"metadata": cluster.metadata})


@ROUTER.post(
    PATH,
    dependencies=[may("clusters:update")],
    summary="Add to the metadata of a cluster",
    openapi_extra=takes(FIELDS),
    responses=ONE,
)
def add_metadata(context: Context, cluster_id: str, body: Body) -> Response:
    """Set these keys; others stay."""
    entries = bodies.mapping(bodies.unwrapped(body, "metadata"), "metadata")
    return _changed(context, cluster_id, lambda before: {**before, **entries})


@ROUTER.put(
    PATH,
    dependencies=[may("clusters:update")],
    summary="Replace the metadata of a cluster",
    openapi_extra=takes(FIELDS),
    responses=ONE,
)
def replace_metadata(context: Context, cluster_id: str, body: Body) -> Response:
    entries = bodies.mapping(bodies.unwrapped(body, "metadata"), "metadata")
    return _changed(context, cluster_id, lambda _: entries)


@ROUTER.get(f"{PATH}/{{key}}", dependencies=[may("clusters:get")], summary="Show a key of the metadata", responses=ONE)
def show_metadata_key(context: Context, cluster_id: str, key: str) -> Response:
    with context.db.read() as tx:
        cluster = context.clusters.clusters.get(tx, context.scope, cluster_id)
    return context.json({"meta": {key: _present(cluster.metadata, key)[key]}})


@ROUTER.put(
    f"{PATH}/{{key}}",
    dependencies=[may("clusters:update")],
    summary="Set a key of the metadata",
    openapi_extra=takes({"meta": Field(bodies.mapping, required=True)}),
    responses=ONE,
)
def set_metadata_key(context: Context, cluster_id: str, key: str, body: Body) -> Response:
    entry = bodies.unwrapped(body, "meta")
    if set(entry) != {key}:
        raise wrong(f"The map 'meta' has to have the key '{key}' of the address, and no other.")
    _changed(context, cluster_id, lambda before: {**before, key: entry[key]})
    return context.json({"meta": {key: entry[key]}})


@ROUTER.delete(
    f"{PATH}/{{key}}",
    dependencies=[may("clusters:update")],
    summary="Remove a key of the metadata",
    status_code=204,
    responses=answers(None, code=204),
)
def delete_metadata_key(context: Context, cluster_id: str, key: str) -> Response:
    _changed(
        context,
        cluster_id,
        lambda before: {name: value for name, value in _present(before, key).items() if name != key},
    )
    return nothing()


def _present(metadata: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    if key not in metadata:
        raise Rejected("ResourceNotFound", f"The metadata '{key}' could not be found.")
    return metadata


def _changed(context: ClusteringContext, cluster_id: str, change: Callable[[Metadata], Metadata]) -> Response:
    def checked(before: Metadata) -> Metadata:
        return bodies.metadata(change(before), "metadata")

    return context.json({"metadata": context.clusters.clusters.set_metadata(context.scope, cluster_id, checked)})
