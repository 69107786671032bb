"""`homeostat graph`: of a real stack, drawn by the real Graphviz."""

import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from homeostat.cli import graph_pictures
from homeostat.cli.views import Snapshot
from tests.cli.conftest import Home

TEMPLATE = """
heat_template_version: wallaby
resources:
  network: {type: OS::Neutron::Net, properties: {name: "a \\"quoted\\" <b>#; name"}}
  one: {type: OS::Heat::TestResource, depends_on: network}
  group:
    type: OS::Heat::ResourceGroup
    depends_on: one
    properties: {count: 3, resource_def: {type: OS::Heat::RandomString}}
"""


@pytest.fixture
def stack(service: Home, tmp_path: Path) -> str:
    file = tmp_path / "drawn.yaml"
    file.write_text(TEMPLATE.replace("OS::Heat::TestResource", "OS::Heat::RandomString"))
    made = service.run("up", str(file), "drawn")
    assert made.code == 0, made.err
    return "drawn"


def test_the_graph_of_a_stack(service: Home, stack: str, tmp_path: Path) -> None:
    lines = service.run("graph", stack).out.splitlines()
    assert lines[0] == "flowchart BT"
    assert sum(" --> " in line for line in lines) == 2
    (group,) = [line for line in lines if "group<br/>" in line]
    assert "create complete<br/>3 in it: 3 complete" in group
    found = service.run("graph", stack, "--json").json()["graph"]
    names = {each["id"]: each["label"][0] for each in found["nodes"]}
    assert {(names[each["from"]], names[each["to"]]) for each in found["edges"]} == {
        ("one", "network"),
        ("group", "one"),
    }
    file = tmp_path / "g.dot"
    assert service.run("graph", stack, "--output", str(file)).out == ""
    assert file.read_text().startswith('digraph "drawn" {')
    refused = service.run("graph", stack, "--output", str(tmp_path / "none/g.dot"))
    assert (refused.code, "cannot write" in refused.err) == (1, True)


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_draws_it(service: Home, stack: str, tmp_path: Path) -> None:
    file = tmp_path / "g.svg"
    drawn = service.run("graph", stack, "--output", str(file))
    assert drawn.code == 0, drawn.err
    texts = [each.text for each in ElementTree.parse(file).getroot().iter("{http://www.w3.org/2000/svg}text")]
    assert {"network", "one", "group"} <= set(texts)


def test_labels_hold_nothing_that_would_end_them() -> None:
    wire = {
        "resource_name": 'a"b#c;<d>\\',
        "resource_type": "T",
        "resource_status": "CREATE_FAILED",
        "resource_status_reason": "",
        "physical_resource_id": "",
        "required_by": [],
        "links": [{"rel": "stack", "href": "http://x/v1/p/stacks/s/1"}],
        "updated_time": "2026-01-01T00:00:00Z",
    }
    stack = {"id": "1", "stack_name": 's"', "stack_status": "CREATE_FAILED"}
    graph = graph_pictures.graph_of(Snapshot.of(stack, [wire]))
    assert 'n0["a#34;b#35;c#59;#60;d#62;#92;<br/>' in graph_pictures.mermaid(graph)
    dot = graph_pictures.dot(graph)
    assert 'digraph "s\\"" {' in dot
    assert 'label="a\\"b#c;<d>\\\\\\nT\\ncreate failed"' in dot
