"""The graph of a stack in few bytes: its resources, their requirements and their states."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.context import Context, StackId, StackName
from homeostat.api.http.responses import Json
from homeostat.api.orchestration.models.graphs import GraphResource, NestedGraph, ShownGraph
from homeostat.api.orchestration.routes import STACK, answers, router
from homeostat.api.orchestration.views import is_deleted, shown_mark
from homeostat.model.status import Status, joined
from homeostat.model.world import Resource
from homeostat.planner.current import current_row
from homeostat.planner.policies.unhealthy import mark_of
from homeostat.resources.registry import shown_id
from homeostat.services.graphs import Graph
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks import progress, stacks, views

ROUTER = router("resources")
GRAPH_MAX = 10_000
"""Resources of a stack with more than this are counted and not listed."""
NESTED_DEPTH = 5


@ROUTER.get(
    f"{STACK}/graph",
    dependencies=[may("stacks:graph")],
    summary="Show the graph of a stack",
    responses=answers(ShownGraph),
)
def show_graph(context: Context, stack_name: StackName, stack_id: StackId) -> Response:
    """Show each resource of a stack: its state, its requirements, and the progress of its nested stack.

    Nested stacks are shown as counts, so their size does not matter. A stack with more than ten thousand direct
    resources, such as a large group, is shown as counts, too.
    """
    with context.db.read() as tx:
        stack = context.stack(tx, stack_name, stack_id)
        graph = context.service.graphs.wanted(tx, stack)
        tally = progress.counted_by_stack(tx, [stack.id]).get(stack.id, progress.NO_NODES)
        large = max(len(graph.definitions), tally.planned) > GRAPH_MAX
        items = [] if large or is_deleted(stack) else _listed(tx, stack, graph)
    view: ShownGraph = {
        "graph": {
            "stack_name": stack.name,
            "stack_status": joined(stack.action, stack.status),
            "revision": stack.revision,
            "planned": max(tally.planned, len(graph.definitions)),
            "done": tally.done,
            "failed": tally.failed,
            "listed": not large,
            "resources": items,
        }
    }
    return Json(view)


def _listed(tx: Transaction, stack: StackRow, graph: Graph) -> list[GraphResource]:
    alike: dict[str, list[Resource]] = defaultdict(list)
    for state in views.states(tx, stack.id):
        alike[state.name].append(state)
    nested = _nested(tx, stack)
    facts = stacks.facts(stack)
    items: list[GraphResource] = []
    for name in (*graph.definitions, *(name for name in alike if name not in graph.definitions)):
        definition = graph.definitions.get(name)
        row = current_row(alike.get(name, ()), facts)
        if row is None and definition is None:
            row = max(alike[name], key=lambda row: row.born)
        called = definition.shown_type if definition is not None else ""
        shown_type = row.shown_type if row is not None else called
        view = _resource(name, shown_type, row, alike.get(name, ()))
        if definition is not None and definition.requires:
            view["requires"] = list(definition.requires)
        if row is not None and row.handle in nested:
            view["nested"] = nested[row.handle]
        items.append(view)
    return items


def _resource(name: str, shown_type: str, row: Resource | None, alike: Iterable[Resource]) -> GraphResource:
    if row is None:
        return {"name": name, "type": shown_type, "status": "INIT_COMPLETE"}
    view: GraphResource = {
        "name": name,
        "type": shown_type,
        "status": joined(row.action, row.status),
        "id": shown_id(row.type, row.handle),
    }
    if row.status != Status.COMPLETE and row.reason:
        view["reason"] = row.reason
    mark = mark_of(row)
    if mark is not None:
        view["unhealthy"] = shown_mark(mark)
    leaving = sum(other is not row for other in alike)
    if leaving:
        view["leaving"] = leaving
    return view


def _nested(tx: Transaction, stack: StackRow) -> Mapping[str, NestedGraph]:
    """Return the progress of the nested stack of each resource, deeper stacks included, by the nested stack's id."""
    children = {row.id: row for row in views.descendants(tx, stack, 1)}
    if not children:
        return {}
    top = {child: child for child in children}
    for nested in progress.nested_stacks(tx, stack.id, NESTED_DEPTH) or ():
        if nested.parent_id in top:
            top[nested.id] = top[nested.parent_id]
    counts = progress.counted_by_stack(tx, list(top))
    sums: dict[str, progress.StackCounts] = defaultdict(lambda: progress.NO_NODES)
    for id, child in top.items():
        sums[child] += counts.get(id, progress.NO_NODES)
    return {
        id: {
            "stack_name": row.name,
            "stack_id": id,
            "status": joined(row.action, row.status),
            "planned": sums[id].planned,
            "done": sums[id].done,
            "failed": sums[id].failed,
        }
        for id, row in children.items()
    }
