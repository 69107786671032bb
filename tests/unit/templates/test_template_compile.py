"""The whole: sections, resources, requirements, order, outputs, and every error in its words."""

import itertools
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.templates.template_cases import Built, compiled, resource, template

from homeostat.model.desired import Definition
from homeostat.model.errors import Rejected
from homeostat.templates import evaluate, validate_shape
from homeostat.templates.graph import Cycle, ordered

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.yaml"))
FILES = {"bootstrap.sh": "#!/bin/sh\necho $role"}


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_samples_compile(path: Path) -> None:
    found = compiled(path.read_text(), files=FILES)
    scope = Built({"ip": "10.0.0.1"})
    assert found.definitions.keys() == set(found.resource_order)
    for definition in found.definitions.values():
        evaluate(definition.properties, scope)
        assert set(definition.requires) <= found.definitions.keys()
    assert validate_shape(found)["Description"] != "No description"


def test_there_are_samples_of_every_kind() -> None:
    text = "\n".join(path.read_text() for path in SAMPLES)
    versions = {yaml.safe_load(path.read_text())["heat_template_version"] for path in SAMPLES}
    assert len(SAMPLES) >= 5
    assert len(versions) >= 4
    for word in ("get_attr", "get_file", "repeat", "conditions", "str_replace", "depends_on", "parameter_groups"):
        assert word in text


def test_a_definition_has_all_of_its_template() -> None:
    found = compiled(
        template(
            description="About it",
            parameters={"keep": {"type": "string", "default": "retain"}},
            resources={
                "a": resource(),
                "b": resource(
                    {"value": {"get_resource": "a"}},
                    metadata={"peer": {"get_attr": ["c", "x"]}},
                    depends_on=["d", "a"],
                    deletion_policy={"get_param": "keep"},
                    update_policy={"batch": {"max": 1}},
                    description="The second",
                ),
                "c": resource({"value": 1}),
                "d": resource(),
            },
            outputs={"o": {"value": {"get_attr": ["b", "x"]}, "description": "It"}, "p": {"value": None}},
        )
    )
    b = found.definitions["b"]
    assert b.requires == ("a", "c", "d")
    assert (b.deletion_policy, b.description, b.static) == ("Retain", "The second", False)
    assert b.update_policy == {"batch": {"max": 1}}
    assert evaluate(b.metadata, Built({"x": 1})) == {"peer": 1}
    assert found.definitions["c"] == Definition("c", "OS::Heat::TestResource", {"value": 1}, static=True)
    assert list(found.definitions) == ["a", "b", "c", "d"]
    assert found.resource_order.index("b") == 3
    assert found.description == "About it"
    assert (found.outputs["o"].description, found.outputs["p"].description) == ("It", "No description given")


def test_what_is_empty_is_as_good_as_absent() -> None:
    found = compiled(template(resources=None, outputs=None, parameters=None, parameter_groups=None))
    assert (found.definitions, found.outputs, found.description) == ({}, {}, "No description")
    keys = "properties metadata depends_on deletion_policy update_policy description condition external_id"
    bare = compiled(template(resources={"r": {**dict.fromkeys(keys.split()), "type": "OS::Heat::TestResource"}}))
    assert bare.definitions["r"] == Definition("r", "OS::Heat::TestResource", static=True)


def test_external_resources_are_kept_and_require_nothing() -> None:
    entry = resource({"value": {"get_resource": "a"}}, external_id="x-1", deletion_policy="delete")
    found = compiled(template(resources={"a": resource(), "r": entry})).definitions["r"]
    assert (found.external_id, found.deletion_policy, found.requires) == ("x-1", "Retain", ())


def test_properties_may_come_from_parameters_and_merged_maps() -> None:
    found = compiled(
        template(
            parameters={"base": {"type": "json", "default": {"value": 1}}},
            resources={
                "a": resource({"get_param": "base"}),
                "b": resource({"map_merge": [{"get_param": "base"}, {"peer": {"get_resource": "a"}}]}),
            },
        )
    ).definitions
    assert (found["a"].properties, found["a"].static) == ({"value": 1}, True)
    assert evaluate(found["b"].properties, Built()) == {"value": 1, "peer": "a-id"}
    assert found["b"].requires == ("a",)


INVALID, REFERENCE = "StackValidationFailed", "InvalidTemplateReference"


def resources(**entries: Any) -> dict[str, Any]:
    return template("2018-08-31", resources=entries)


ERRORS = [
    (template(mappings={}), "InvalidTemplateSection", "The template section is invalid: mappings"),
    (template(resources=["r"]), INVALID, 'resources: "resources" must contain a map of resource maps. Found a [list]'),
    (template(parameters="p"), INVALID, '"parameters" must contain a map of parameter maps. Found a [str] instead'),
    (resources(r="x"), INVALID, 'resources.r: "resources" must contain a map of resource maps. Found a [str] instead'),
    (resources(r={}), INVALID, "resources.r: Each resource must contain a type key."),
    (resources(r={"type": None}), INVALID, 'Resource "r" has no type'),
    (resources(r={"type": ""}), INVALID, 'Non-empty resource type is required for resource "r"'),
    (resources(r={"type": {"get_param": "t"}}), INVALID, 'Resource "r" type is not a string'),
    (
        resources(r=resource(propertes={}, Type=1)),
        INVALID,
        "Invalid keyword(s) inside a resource definition: Type, prop",
    ),
    (resources(**{"a/b": resource()}), INVALID, 'Resource name may not contain "/": a/b'),
    (resources(r=resource([1])), INVALID, "resources.r.properties: A map is needed, found a list"),
    (resources(r=resource({"get_attr": ["a", "x"]}), a=resource()), INVALID, "use get_attr for values within the map"),
    (resources(r=resource(metadata="x")), INVALID, "resources.r.metadata: A map is needed, found a str"),
    (resources(r=resource(update_policy=[])), INVALID, "resources.r.update_policy: A map is needed, found a list"),
    (resources(r=resource(depends_on={"get_param": "x"})), INVALID, "depends_on must be a string or a list of strings"),
    (resources(r=resource(depends_on=[1])), INVALID, "depends_on must be a string or a list of strings"),
    (resources(r=resource(depends_on="x")), REFERENCE, 'The specified reference "x" (in r.depends_on) is incorrect.'),
    (resources(r=resource({"a": {"get_resource": "x"}})), REFERENCE, 'reference "x" (in r.properties.a) is incorrect.'),
    (resources(r=resource({"a": {"get_attr": ["x", "y"]}})), REFERENCE, 'reference "x" (in r.properties.a) is'),
    (
        resources(r=resource(deletion_policy="keep")),
        INVALID,
        'resources.r.deletion_policy: Invalid deletion policy "keep"',
    ),
    (resources(r=resource(deletion_policy={"get_resource": "a"}), a=resource()), INVALID, "Invalid deletion policy"),
    (
        template("2016-04-08", resources={"r": resource(deletion_policy="retain")}),
        INVALID,
        'Invalid deletion policy "retain"',
    ),
    (resources(r=resource(external_id="x", depends_on="a"), a=resource()), INVALID, "it cannot have depends_on"),
    (
        template(parameters={"r": {"type": "string", "default": ""}}, resources={"r": resource()}),
        INVALID,
        "Duplicate names {'r'}",
    ),
    (template(outputs={"o": 5}), INVALID, '"outputs" must contain a map of output maps. Found a [int] instead'),
    (template(outputs={"o": {"description": "x"}}), INVALID, "outputs.o: Each output must contain a value key."),
    (template(outputs={"o": {"value": 1, "x": 1}}), INVALID, "Invalid keyword(s) inside an output definition: x"),
    (template("2016-04-08", outputs={"o": {"value": 1, "condition": True}}), INVALID, "output definition: condition"),
    (template(outputs={"o": {"value": {"get_resource": "x"}}}), REFERENCE, 'reference "x" (in outputs.o.value) is'),
    (
        template(parameter_groups={}),
        INVALID,
        "Parameter Groups error: parameter_groups: The parameter_groups should be",
    ),
    (template(parameter_groups=["g"]), INVALID, "A parameter group should be a map."),
    (
        template(parameter_groups=[{"label": "g"}]),
        INVALID,
        "parameter_groups.g: The parameters must be provided for each",
    ),
    (
        template(parameter_groups=[{"parameters": "p"}]),
        INVALID,
        "parameter_groups[0]: The parameters of parameter group",
    ),
    (template(parameter_groups=[{"parameters": ["p"]}]), INVALID, "The grouped parameter p does not reference a valid"),
    (
        template(parameters={"p": {"type": "json", "default": {}}}, parameter_groups=[{"parameters": ["p", "p"]}]),
        INVALID,
        "The p parameter must be assigned to one parameter group only.",
    ),
]


@pytest.mark.parametrize(("document", "fault", "message"), ERRORS, ids=[case[2] for case in ERRORS])
def test_errors(document: dict[str, Any], fault: str, message: str) -> None:
    with pytest.raises(Rejected) as caught:
        compiled(document)
    assert caught.value.fault == fault
    assert message in str(caught.value)
    assert caught.value.code == 400


def test_errors_come_in_the_order_clients_know() -> None:
    wrong = {
        "resources": {"r": {"type": "T", "bad": 1, "depends_on": "nobody"}},
        "parameters": {"p": {"type": "strin"}},
        "parameter_groups": "x",
        "conditions": {"c": "d"},
        "outputs": {"o": {}},
    }
    right = {
        "parameters": {"p": {"type": "string", "default": ""}},
        "parameter_groups": [],
        "conditions": {},
        "resources": {},
        "outputs": {},
    }
    messages = []
    for section in (None, *right):
        if section is not None:
            wrong[section] = right[section]
        if section != "outputs":
            with pytest.raises(Rejected) as caught:
                compiled({**template(), **wrong})
            messages.append(caught.value.detail.split()[0])
    assert messages == ["Invalid", "The", "The", "Invalid", "Each"]
    compiled({**template(), **wrong})


def test_cycles_are_named() -> None:
    around = {
        "a": resource({"x": {"get_resource": "b"}}),
        "b": resource(depends_on="c"),
        "c": resource(metadata={"x": {"get_attr": ["a", "x"]}}),
    }
    with pytest.raises(Rejected) as caught:
        compiled(template(resources=around))
    assert caught.value.fault == "CircularDependencyException"
    assert str(caught.value) == "Circular Dependency Found: a -> b -> c -> a"
    with pytest.raises(Rejected, match="Circular Dependency Found: r -> r"):
        compiled(template(resources={"r": resource({"x": {"get_resource": "r"}})}))


@given(st.dictionaries(st.integers(0, 8).map(str), st.sets(st.integers(0, 8).map(str))))
def test_order_or_cycle(graph: dict[str, set[str]]) -> None:
    try:
        order = ordered(graph)
    except Cycle as cycle:
        around = [*cycle.names, cycle.names[0]]
        assert all(below in graph[name] for name, below in itertools.pairwise(around))
        return
    assert sorted(order) == sorted(graph)
    done: set[str] = set()
    for name in order:
        assert graph[name] & graph.keys() <= done
        done.add(name)


def test_a_chain_of_any_length() -> None:
    length = 10_000
    chain = {f"r{n}": resource({"value": {"get_attr": [f"r{n - 1}", "output"]}} if n else {}) for n in range(length)}
    found = compiled(template(resources=dict(reversed(chain.items()))))
    assert found.resource_order == tuple(f"r{n}" for n in range(length))
    with pytest.raises(Rejected, match="Circular Dependency Found: r0 -> r9999 -> r9998"):
        compiled(template(resources=chain | {"r0": resource(depends_on=f"r{length - 1}")}))


def test_time_grows_with_the_template() -> None:
    def cpu_seconds(count: int) -> float:
        entries = {f"r{n}": resource({"value": {"get_param": "x"}}) for n in range(count)}
        document = template(resources=entries, parameters={"x": {"type": "string", "default": "v"}})
        best = float("inf")
        for _attempt in range(3):
            start = time.process_time()
            compiled(document)
            best = min(best, time.process_time() - start)
        return best

    # Quadratic work would make it 64 times.
    assert cpu_seconds(8000) < 24 * cpu_seconds(1000)


def test_validate_form() -> None:
    document = template(
        description="All of it",
        parameters={
            "a": {"type": "string"},
            "b": {"type": "json", "default": {}},
            "h": {"type": "string", "hidden": 1},
        },
        parameter_groups=[{"label": "g", "parameters": ["a"]}],
    )
    environment = {"parameters": {"h": "s"}, "resource_registry": {"A": "B"}, "parameter_defaults": {"z": 1}}
    found = compiled(document, strict=False, environment=environment, parameters={"b": "{}"})
    assert found.environment["resource_registry"] == {"A": "B"}
    answer = validate_shape(found)
    assert list(answer["Parameters"]) == ["a", "b", "h"]
    del answer["Parameters"]
    assert answer == {
        "Description": "All of it",
        "ParameterGroups": [{"label": "g", "parameters": ["a"]}],
        "Environment": {
            "parameters": {"h": "******", "b": "{}"},
            "parameter_defaults": {"z": 1},
            "resource_registry": {"A": "B", "resources": {}},
            "event_sinks": [],
        },
    }


ANY = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "a", "b", "string", "Delete"]),
    lambda each: (
        st.lists(each, max_size=3)
        | st.dictionaries(
            st.sampled_from(["a", "b", "type", "get_param", "get_resource", "if", "value"]), each, max_size=3
        )
    ),
    max_leaves=10,
)
SECTIONS = ("parameters", "resources", "outputs", "conditions", "parameter_groups", "description")
ENTRIES = st.fixed_dictionaries(
    {"type": st.sampled_from(["string", "json"])},
    optional=dict.fromkeys(
        ("properties", "depends_on", "condition", "default", "constraints", "metadata", "deletion_policy"), ANY
    ),
)


@given(st.dictionaries(st.sampled_from(SECTIONS), ANY | st.dictionaries(st.sampled_from(["a", "b"]), ENTRIES)))
def test_any_document_compiles_or_is_rejected(sections: dict[str, Any]) -> None:
    for strict in (True, False):
        try:
            found = compiled(template(**sections), strict=strict)
        except Rejected:
            continue
        for definition in found.definitions.values():
            assert definition.static or definition.requires


def test_groups_that_depend_on_each_other_are_one_edge() -> None:
    """However many members they have: these are resources of stacks of their own."""

    def group(value: Any) -> dict[str, Any]:
        one = {"type": "OS::Heat::TestResource", "properties": {"value": value}}
        return {"type": "OS::Heat::ResourceGroup", "properties": {"count": 1000, "resource_def": one}}

    first, second = group("v"), group({"get_attr": ["first", "output"]})
    found = compiled(template(resources={"first": first, "second": second})).definitions
    assert {name: each.requires for name, each in found.items()} == {"first": (), "second": ("first",)}
