"""The import graph of the package: no circles, on any level."""

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

import grimp


def _imports() -> Mapping[str, set[str]]:
    graph = grimp.build_graph("homeostat")
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def _circle(imports: Mapping[str, set[str]]) -> list[str]:
    """Return the modules of one circle; [] where there is none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert _circle(_imports()) == []


def test_a_circle_is_found() -> None:
    assert set(_circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})) == {"a", "b", "c"}
