"""Which functions each template version has."""

from typing import Any

import pytest
from tests.unit.templates.template_cases import compiled, resource, template, value_of

from homeostat.model.errors import Rejected
from homeostat.templates.functions import condition_functions, ordinary_functions
from homeostat.templates.versions import HOT_KEY, VERSIONS

OLD = [
    ({"list_join": [",", ["a"], ["b"]]}, "2015-04-30", "[delimiter, list]", "one list only"),
    ({"list_join": [",", [{"a": 1}]]}, "2015-04-30", "must be strings", "no JSON"),
    ({"str_replace": {"template": "x", "params": {"x": [1]}}}, "2015-04-30", "string, number or boolean", "no JSON"),
    ({"get_attr": ["other"]}, "2015-04-30", "[resource_name, attribute", "no map of all attributes"),
    ({"repeat": {"template": "x", "for_each": {"x": {"a": 1}}}}, "2016-04-08", "must be a list", "no maps"),
    ({"if": [True, 1]}, "2018-08-31", "value_if_false]", "no omission"),
]


@pytest.mark.parametrize(("snippet", "version", "message", "reason"), OLD, ids=[f"{c[0]}: {c[3]}" for c in OLD])
def test_older_versions_allow_less(snippet: Any, version: str, message: str, reason: str) -> None:
    with pytest.raises(Rejected) as caught:
        value_of(snippet, version)
    assert message in str(caught.value)


def test_permutations_mean_nothing_in_older_versions() -> None:
    snippet = {"repeat": {"template": "xy", "for_each": {"x": ["1", "2"], "y": ["a", "b"]}, "permutations": False}}
    assert value_of(snippet, "2017-02-24") == ["1a", "1b", "2a", "2b"]


MATRIX = """
get_param            13-05
get_resource         13-05
get_attr             13-05
get_file             13-05
list_join            13-05
str_replace          13-05
resource_facade      13-05
digest               15-04
repeat               15-04
str_split            15-10
map_merge            16-04
map_replace          16-10
yaql                 16-10
if                   16-10
filter               17-02
str_replace_strict   17-02
make_url             17-09
list_concat          17-09
list_concat_unique   17-09
contains             17-09
str_replace_vstrict  17-09
"""
SINCE = {line.split()[0]: f"20{line.split()[1]}" for line in MATRIX.split("\n") if line}
DATES = [version.date for version in VERSIONS if version.key == HOT_KEY]
OLDEST = {"Ref", "Fn::GetAZs", "Fn::Join", "Fn::Split", "Fn::Replace", "Fn::Base64", "Fn::MemberListToMap"}
OLDEST |= {"Fn::ResourceFacade"}


def removed(version: str) -> set[str]:
    """Functions that later versions lost."""
    return (OLDEST if version < "2014-10" else set()) | ({"Fn::Select"} if version < "2015-10" else set())


@pytest.mark.parametrize("version", DATES)
def test_availability(version: str) -> None:
    there = {name for name, kind in ordinary_functions(HOT_KEY, version).items() if isinstance(kind, type)}
    assert there == {name for name, since in SINCE.items() if since <= version} | removed(version)


@pytest.mark.parametrize("version", [date for date in DATES if date >= "2016-10"])
def test_availability_in_conditions(version: str) -> None:
    there = {name for name, kind in condition_functions(HOT_KEY, version).items() if isinstance(kind, type)}
    assert there == {"get_param", "equals", "not", "and", "or"} | (
        {"contains", "yaql"} if version >= "2017-09" else set()
    )


UNAVAILABLE = [
    (
        {"digest": ["md5", "a"]},
        "2014-10-16",
        "InvalidTemplateVersion",
        "needs heat_template_version 2015-04-30 or later",
    ),
    ({"if": [True, 1, 2]}, "2016-04-08", "InvalidTemplateVersion", "needs heat_template_version 2016-10-14 or later"),
    ({"Ref": "other"}, "2014-10-16", "InvalidTemplateVersion", "Ref is not supported in this version of HOT."),
    ({"Fn::Select": [0, []]}, "2015-10-15", "InvalidTemplateVersion", "Fn::Select is not supported in this version"),
]


@pytest.mark.parametrize(("snippet", "version", "fault", "message"), UNAVAILABLE)
def test_functions_of_other_versions(snippet: Any, version: str, fault: str, message: str) -> None:
    with pytest.raises(Rejected) as caught:
        compiled(template(version, resources={"other": resource(), "it": resource({"value": snippet})}))
    assert caught.value.fault == fault
    assert message in str(caught.value)


def test_a_function_of_a_newer_version_is_a_map_in_an_output() -> None:
    values = {"later": {"digest": ["md5", "a"]}, "inside": {"list_join": ["-", [{"digest": ["md5", "a"]}]]}}
    outputs = {name: {"value": value} for name, value in values.items()}
    found = compiled(template("2014-10-16", resources={"v": resource()}, outputs=outputs)).outputs
    assert found["later"].value == {"digest": ["md5", "a"]}
    removed = template("2014-10-16", resources={"v": resource()}, outputs={"o": {"value": {"Ref": "v"}}})
    with pytest.raises(Rejected, match="Ref is not supported in this version"):
        compiled(removed)
