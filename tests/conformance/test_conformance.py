"""The harness that tries templates of others: what it finds, makes up and judges; and the examples of this project."""

from pathlib import Path
from typing import Any

import pytest
from conformance.corpus import MISSING, Case, Corpus
from conformance.trial import Outcome, trial
from conformance.values import made_up

from conformance import expected, judge, report
from homeostat.templates import parse_template

ROOT = Path(__file__).parents[2]
SERVER = "{type: OS::Nova::Server, properties: {image: i, flavor: f}}"


def hot(resources: str, more: str = "") -> str:
    return f"heat_template_version: 2018-08-31\n{more}\nresources:\n{resources}\n"


def written(folder: Path, **texts: str) -> Corpus:
    """A corpus of these files; `__` in a name is the border of a folder, `_ext` at its end the ending."""
    for name, text in texts.items():
        stem, _, ending = name.replace("__", "/").rpartition("_")
        path = folder / f"{stem}.{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Corpus(folder)


def case_of(text: str, **environment: Any) -> Case:
    return Case("t.yaml", "", text, parse_template(text), environment=environment)


# -- finding -----------------------------------------------------------------------------------------------------------


def test_a_nested_template_and_its_script_are_found_by_their_places(tmp_path: Path) -> None:
    corpus = written(
        tmp_path,
        r__top_yaml=hot("  a: {type: parts/one.yaml}"),
        r__parts__one_yaml=hot(
            "  s: {type: OS::Nova::Server, properties: {image: i, flavor: f, user_data: {get_file: x.sh}}}"
        ),
    )
    part, top = corpus.cases()
    assert (part.path, part.part, top.path, top.part) == ("r/parts/one.yaml", True, "r/top.yaml", False)
    assert top.template["resources"]["a"]["type"] == "r/parts/one.yaml"  # type: ignore[index]
    assert top.files.keys() == {"r/parts/one.yaml", "r/parts/x.sh"}
    assert top.files["r/parts/x.sh"] == MISSING


@pytest.mark.parametrize("name", ["web_env", "web-env_yaml", "web_env_yaml", "webEnv_yaml", "web-env-small_yaml"])
def test_an_environment_beside_a_template_belongs_to_it_by_its_name(tmp_path: Path, name: str) -> None:
    corpus = written(tmp_path, web_yaml=hot(f"  s: {SERVER}"), **{name: "parameters: {a: 1}"})
    (case,) = corpus.cases()
    assert case.environment == {"parameters": {"a": 1}}


def test_an_environment_that_makes_the_types_known_is_used(tmp_path: Path) -> None:
    corpus = written(
        tmp_path,
        web_yaml=hot("  s: {type: My::Agent}"),
        other__agent_env_yaml="resource_registry: {'My::Agent': agent.yaml}",
        other__agent_yaml=hot(f"  s: {SERVER}"),
    )
    case = next(corpus.cases("web"))
    assert case.environment["resource_registry"] == {"My::Agent": "other/agent.yaml"}
    assert "other/agent.yaml" in case.files


def test_what_is_no_template_is_left_out(tmp_path: Path) -> None:
    corpus = written(tmp_path, config_yaml="packages: [a]", list_json="[1]", web_yaml=hot(f"  s: {SERVER}"))
    assert [case.path for case in corpus.cases()] == ["web.yaml"]
    assert corpus.others == 2


def test_what_lacks_a_version_is_tried_with_one_too(tmp_path: Path) -> None:
    corpus = written(tmp_path, web_yaml=f"resources: {{s: {SERVER}}}")
    outcomes = [trial(case) for case in corpus.cases()]
    assert [(each.fault, each.passed) for each in outcomes] == [("InvalidTemplateVersion", False), ("", True)]


# -- making up values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameter", "use", "value"),
    [
        ("{type: string, constraints: [{allowed_values: [x, y]}]}", "OS::Heat::Value, properties: {value: P}", "x"),
        ("{type: number, constraints: [{range: {min: 7}}]}", "OS::Heat::Value, properties: {value: P}", 7),
        ("{type: string}", "OS::Neutron::Subnet, properties: {network: n, cidr: P}", "10.0.0.0/24"),
        ("{type: string}", "OS::Cinder::Volume, properties: {size: P}", "1"),
        ("{type: number, constraints: [{range: {min: 0}}]}", "OS::Cinder::Volume, properties: {size: P}", 1),
        (
            "{type: string, constraints: [{length: {min: 40}}]}",
            "OS::Heat::Value, properties: {value: P}",
            "Aa1" * 13 + "A",
        ),
        ("{type: boolean}", "OS::Heat::Value, properties: {value: P}", True),
    ],
)
def test_a_value_fits_the_constraints_and_the_use(parameter: str, use: str, value: Any) -> None:
    text = hot(f"  r: {{type: {use}}}".replace("P", "{get_param: thing}", 1), f"parameters: {{thing: {parameter}}}")
    assert made_up(case_of(text)) == {"thing": value}


def test_lists_and_trees_are_as_deep_as_they_are_used() -> None:
    more = "parameters: {many: {type: comma_delimited_list}, tree: {type: json}, at: {type: number}}"
    text = hot(
        "  r: {type: OS::Heat::Value, properties: {value: [{get_param: [many, 2]}, {get_param: [tree, a, b]}]}}", more
    )
    values = made_up(case_of(text))
    assert len(values["many"]) == 3
    assert values["tree"] == {"a": {"b": "made-up-b"}}


def test_given_values_are_not_made_up() -> None:
    text = hot(f"  s: {SERVER}", "parameters: {a: {type: string}, b: {type: string, default: x}, c: {type: string}}")
    assert made_up(case_of(text, parameters={"a": "1"})).keys() == {"c"}


# -- judging -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("heat_template_version: [", "it is not YAML: ParserError"),
        ("resources: {}", "it names no version"),
        ("heat_template_version: 2015-05-23", "there is no such version: 2015-05-23"),
        ("heat_template_version: 2015-04-30\nconditions: {}", "its version has no section conditions: 2015-04-30"),
        (hot("  a: {properties: {}}"), "a resource has no type: a"),
        (hot("  a: {type: t, oops: 1}"), "a resource has an unknown key: a, oops"),
        (hot("  a: {type: t, properties: {x: {get_param: p}}}"), "a function names what is not declared: get_param p"),
        (hot("  a: {type: t, depends_on: b}"), "a resource depends on what is not declared: a, b"),
        (hot("  a: {type: t}", "parameters: {p: {}}"), "a parameter has no known type: p"),
        (hot("  a: {type: t, properties: {x: {get_param: 'OS::stack_name'}}}"), ""),
    ],
)
def test_rules_of_the_language(text: str, why: str) -> None:
    assert judge.problem(text, {}) == why


@pytest.mark.parametrize(
    ("outcome", "entry", "wrong"),
    [
        (Outcome("t.yaml", "", False, "deleted"), None, ""),
        (Outcome("t.yaml", "", False, "create", "Stopped", "m"), None, "valid, but stopped at create: Stopped: m"),
        (Outcome("t.yaml", "", False, "deleted"), expected.Expected("invalid", "b"), "it passes, though"),
        (
            Outcome("t.yaml", "", False, "", "NotFound", "m"),
            expected.Expected("invalid", "b"),
            "the answer names no place",
        ),
        (Outcome("t.yaml", "", False, "", "NotFound", "m", "p"), expected.Expected("invalid", "b", "m"), ""),
        (
            Outcome("t.yaml", "", False, "", "NotFound", "m", "p"),
            expected.Expected("invalid", "b", "n"),
            "does not say",
        ),
        (
            Outcome("t.yaml", "", False, "create", "KeyError", "m"),
            expected.Expected("invalid", "b"),
            "should be refused",
        ),
    ],
)
def test_an_outcome_is_compared_with_what_is_expected(outcome: Outcome, entry: Any, wrong: str) -> None:
    table = {} if entry is None else {"t.yaml": entry}
    found = expected.judged(case_of(hot(f"  s: {SERVER}")), outcome, table)
    assert found.wrong.startswith(wrong) or wrong in found.wrong
    assert bool(found.wrong) == bool(wrong)


# -- trying ------------------------------------------------------------------------------------------------------------


def test_a_stack_that_fails_is_no_pass() -> None:
    outcome = trial(case_of(hot("  a: {type: OS::Heat::TestResource, properties: {fail: true}}")))
    assert (outcome.reached, outcome.fault, outcome.passed) == ("create", "Stopped", False)
    assert "CREATE_FAILED" in outcome.message


def test_a_mistake_is_an_answer_with_a_place() -> None:
    outcome = trial(case_of(hot("  a: {type: OS::Nova::Server, properties: {image: i}}")))
    assert (outcome.reached, outcome.refused, outcome.place) == ("", True, "resources.a.properties")


EXAMPLES = [case for case in Corpus(ROOT / "examples").cases() if not case.path.startswith("plugin/")]
"""All but the one of a package that is to be installed first, which has a test of its own."""


@pytest.mark.heavy
@pytest.mark.parametrize("faults", [None, 1])
@pytest.mark.parametrize("case", EXAMPLES, ids=[case.path for case in EXAMPLES])
def test_the_examples_pass(case: Case, faults: int | None) -> None:
    outcome = trial(case, faults)
    assert outcome.passed, f"{outcome.reached}: {outcome.message}"


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_the_table_and_the_results_agree() -> None:
    table, found = expected.by_path(expected.load()), report.stored()
    recorded = found["templates"]
    for path, entry in table.items():
        if path in recorded and recorded[path]["kind"] != "wrong":
            assert (recorded[path]["kind"], recorded[path]["because"]) == (entry.kind, entry.because), path
        else:
            assert path in recorded, f"{path} passes: take it out of {expected.FILE.name}"
    counted = sum(count.get(kind, 0) for count in found["repositories"].values() for kind in (*expected.KINDS, "wrong"))
    assert counted == len(recorded)


def test_the_page_shows_the_results() -> None:
    assert report.PAGE.read_text() == report.page(), "run `python -m conformance.report`"


def test_an_address_means_a_file_of_the_folder(tmp_path: Path) -> None:
    server = f"  s: {SERVER}"
    addresses = {
        "a": "https://raw.githubusercontent.com/you/other/main/lib/two.yaml",
        "b": "http://github.com/you/other/raw/main/lib/two.yaml",
        "c": "http://files.example.com/old/lib/one.yaml",
        "d": "http://files.example.com/nowhere.yaml",
    }
    for place in ("me+mine/lib/one.yaml", "you+other/lib/two.yaml"):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).write_text(hot(server))
    resources = "\n".join(f"  {name}: {{type: {url!r}}}" for name, url in addresses.items())
    (tmp_path / "me+mine/top.yaml").write_text(hot(resources))
    (top,) = Corpus(tmp_path).cases("top")
    servers = {name: "OS::Nova::Server" in top.files[url] for name, url in addresses.items()}
    assert servers == {"a": True, "b": True, "c": True, "d": False}


def test_numbers_are_numbers_wherever_they_stand() -> None:
    resources = """
  rule: {type: OS::Neutron::SecurityGroupRule, properties: {security_group: g, port_range_min: {get_param: low}}}
  disk: {type: OS::Cinder::Volume, properties: {size: {get_param: [tree, disks, 0, gigabytes]}}}
  other: {type: OS::Heat::Value, properties: {value: {get_param: [tree, port]}}}"""
    made = made_up(case_of(hot(resources, "parameters: {low: {type: number}, tree: {type: json}}")))
    assert made == {"low": 1, "tree": {"disks": [{"gigabytes": 1}], "port": "8080"}}
