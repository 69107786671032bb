"""Outputs of a stack, resolved from rows on each request. An output that cannot be resolved never fails the request."""

import logging

from homeostat.api.orchestration.inventory import Inventory
from homeostat.api.orchestration.models import stacks as models
from homeostat.model.desired import Output
from homeostat.model.errors import HomeostatError, LeadsNowhere, Rejected
from homeostat.planner.scope import RowScope
from homeostat.services.graphs import Graph
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.templates import Scope, WeighedScope, evaluate, requires
from homeostat.templates.functions.references import GetAttr

LOG = logging.getLogger(__name__)
OUTPUTS_MAX = 16 * 1024 * 1024
"""Maximum total size (see `templates.weights`) of the function results of all outputs in one response."""


def declared(graph: Graph) -> list[models.OutputName]:
    """Return names and descriptions, without values."""
    return [{"output_key": output.name, "description": output.description} for output in _outputs(graph)]


def resolved(tx: Transaction, stack: StackRow, graph: Graph) -> list[models.Output]:
    """Return all outputs with their values; reads only the rows that the outputs depend on."""
    outputs = _outputs(graph)
    if not outputs:
        return []
    scope = WeighedScope(_scope(tx, stack, graph, outputs), OUTPUTS_MAX)
    return [_resolved(stack, output, scope) for output in outputs]


def resolved_one(tx: Transaction, stack: StackRow, graph: Graph, key: str) -> models.Output:
    """Return one output with its value. Raise Rejected (NotFound)."""
    for output in _outputs(graph):
        if output.name == key:
            return _resolved(stack, output, _scope(tx, stack, graph, [output]))
    raise Rejected("NotFound", f"Specified output key {key} not found.")


def _outputs(graph: Graph) -> list[Output]:
    return list(graph.compiled.outputs.values()) if graph.compiled is not None else []


def _scope(tx: Transaction, stack: StackRow, graph: Graph, outputs: list[Output]) -> RowScope:
    names = {name for output in outputs for name in requires(output.value)}
    return Inventory(tx, stack, graph, names).scope(names)


def _resolved(stack: StackRow, output: Output, scope: Scope) -> models.Output:
    view: models.Output = {"output_key": output.name, "description": output.description, "output_value": None}
    if not output.active:
        return view
    try:
        view["output_value"] = evaluate(output.value, scope)
    except HomeostatError as error:
        # An output that is just an attribute with a path to nowhere is null, as in Heat: users' templates list the
        # ports that a server may have. If a function uses such a part, the output has an error.
        if isinstance(error, LeadsNowhere) and isinstance(output.value, GetAttr):
            return view
        view["output_error"] = str(error)
    except Exception as error:
        LOG.exception("output %s of stack %s cannot be resolved", output.name, stack.id)
        view["output_error"] = f"{type(error).__name__}: {error}"
    return view
