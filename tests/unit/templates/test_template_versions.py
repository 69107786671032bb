"""Versions of the language: how a template names one, and what the API lists."""

from typing import Any

import pytest

from homeostat.model.errors import Rejected
from homeostat.templates import functions_of, versions
from homeostat.templates.versions import version_of

KEY = "heat_template_version"
NAMED = [
    ("2013-05-23", "2013-05-23"),
    ("newton", "2016-10-14"),
    ("ocata", "2017-02-24"),
    ("pike", "2017-09-01"),
    ("queens", "2018-03-02"),
    ("rocky", "2018-08-31"),
    ("wallaby", "2021-04-16"),
]


@pytest.mark.parametrize(("name", "date"), NAMED)
def test_named_by_date_or_alias(name: str, date: str) -> None:
    assert version_of({KEY: name}).date == date


UNNAMED = [
    ({}, "InvalidTemplateVersion", "Template version was not provided", "no key"),
    ({KEY: 20180831}, "InvalidTemplateVersion", "Template version was not provided", "a number is no version"),
    ({KEY: None}, "InvalidTemplateVersion", "Template version was not provided", "null is no version"),
    ({KEY: "2018-08-31", "AWSTemplateFormatVersion": "x"}, "InvalidTemplateVersion", "Ambiguous versions (AWST", "two"),
    ({KEY: "2015-05-23"}, "InvalidTemplateVersion", '"heat_template_version: 2015-05-23"', "an unknown date"),
    ({KEY: "Newton"}, "InvalidTemplateVersion", "should be one of: 2013-05-23, 2014-10-16", "case counts"),
    ({"AWSTemplateFormatVersion": "2012-12-12"}, "InvalidTemplateVersion", "one of: 2010-09-09", "a date of the other"),
    ({"HeatTemplateFormatVersion": "newton"}, "InvalidTemplateVersion", "one of: 2012-12-12", "no names of releases"),
]


@pytest.mark.parametrize(("template", "fault", "message", "reason"), UNNAMED, ids=[case[3] for case in UNNAMED])
def test_refused(template: dict[str, Any], fault: str, message: str, reason: str) -> None:
    with pytest.raises(Rejected) as caught:
        version_of(template)
    assert caught.value.fault == fault
    assert message in str(caught.value)


def test_a_key_that_is_no_text_does_not_make_versions_ambiguous() -> None:
    assert version_of({KEY: "rocky", "AWSTemplateFormatVersion": None}).date == "2018-08-31"


def test_listed() -> None:
    assert len(versions()) == 13
    assert versions()[0] == ("heat_template_version.2013-05-23", "hot", [])
    assert versions()[10] == ("heat_template_version.2021-04-16", "hot", ["heat_template_version.wallaby"])


def test_listed_of_cfn() -> None:
    assert versions()[11:] == [
        ("AWSTemplateFormatVersion.2010-09-09", "cfn", []),
        ("HeatTemplateFormatVersion.2012-12-12", "cfn", []),
    ]


@pytest.mark.parametrize(("version", "conditional"), [("AWS", {"Fn::If"}), ("Heat", set())])
def test_functions_of_cfn(version: str, conditional: set[str]) -> None:
    dates = {"AWS": "AWSTemplateFormatVersion.2010-09-09", "Heat": "HeatTemplateFormatVersion.2012-12-12"}
    always = {"GetAtt", "FindInMap", "GetAZs", "Select", "Join", "Base64", "Split", "Replace"}
    always |= {"MemberListToMap", "ResourceFacade"}
    ordinary = {name for name, _text, condition in functions_of(dates[version]) if not condition}
    assert ordinary == {"Ref", *conditional, *(f"Fn::{name}" for name in always)}
    in_conditions = {name for name, _text, condition in functions_of(dates[version]) if condition}
    assert in_conditions == ({"Condition", "Fn::Equals", "Fn::Not", "Fn::And", "Fn::Or"} if version == "AWS" else set())


def test_functions_are_listed_with_a_line_each() -> None:
    listed = {name: (text, condition) for name, text, condition in functions_of("heat_template_version.rocky")}
    assert listed["get_attr"] == (
        "Attribute of another resource, the part of it that a path leads to, or a map of all attributes.",
        False,
    )
    assert listed["equals"] == ("Whether two values are equal.", True)
    assert listed["contains"][1] is False
    assert "Ref" not in listed
    assert all(text.endswith(".") and "\n" not in text for text, _condition in listed.values())


@pytest.mark.parametrize("name", ["2018-08-31", "heat_template_version.2015-05-23", "heat_template_version", ""])
def test_functions_of_an_unknown_version(name: str) -> None:
    with pytest.raises(Rejected) as caught:
        functions_of(name)
    assert caught.value.code == 404
