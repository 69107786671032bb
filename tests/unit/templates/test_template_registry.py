"""Section `resource_registry`: which type a type stands for (environment.md section 3)."""

from typing import Any

import pytest

from homeostat.model.desired import Definition
from homeostat.model.errors import Rejected
from homeostat.templates.registry import (
    ALIASES,
    Registry,
    Resolved,
    check_registry,
    child_entries,
    without_nulls,
)

KNOWN = {"OS::Nova::Server", "OS::Neutron::Net", "OS::Neutron::Port", "OS::Heat::None", "My::Server", "Other::Server"}


def registry(user: dict[str, Any], shared: dict[str, Any] | None = None) -> Registry:
    return Registry(user, {**ALIASES, **(shared or {})}, KNOWN.__contains__)


@pytest.mark.parametrize(
    ("entries", "asked", "found"),
    [
        ({}, "OS::Nova::Server", "OS::Nova::Server"),
        ({}, "No::Such", "No::Such"),
        ({}, "part.yaml", "part.yaml"),
        ({}, "OS::Quantum::Net", "OS::Neutron::Net"),
        ({}, "OS::Quantum::NoSuch", "OS::Quantum::NoSuch"),
        ({"A": "OS::Nova::Server"}, "A", "OS::Nova::Server"),
        ({"A": "B", "B": "My::Server"}, "A", "My::Server"),
        ({"A": "part.template"}, "A", "part.template"),
        ({"A": "B", "B": "part.yaml"}, "A", "part.yaml"),
        ({"A": "No::Such"}, "A", "A"),
        ({"OS::Nova::Server": "No::Such"}, "OS::Nova::Server", "OS::Nova::Server"),
        ({"OS::Net::*": "OS::Neutron::*"}, "OS::Net::Port", "OS::Neutron::Port"),
        ({"OS::*": "OS::Heat::None"}, "OS::Nova::Server", "OS::Heat::None"),
        ({"OS::*": "OS::Heat::None"}, "OS::Heat::None", "OS::Heat::None"),
        ({"OS::*": "OS::Neutron::*"}, "OS::Neutron::Net", "OS::Neutron::Net"),
        ({"Old::*": "new.yaml"}, "Old::Thing", "new.yaml"),
        ({"A": "B", "B": "A"}, "A", "A"),
        ({"My::Server": "My::Server"}, "My::Server", "My::Server"),
    ],
    ids=str,
)
def test_what_a_type_stands_for(entries: dict[str, Any], asked: str, found: str) -> None:
    assert registry(entries).resolve(asked, "web").type == found


def test_entries_of_the_user_go_before_those_for_all() -> None:
    both = registry({"OS::Nova::Server": "mine.yaml"}, {"OS::Nova::Server": "theirs.yaml"})
    assert both.resolve("OS::Nova::Server", "web").type == "mine.yaml"
    assert registry({}, {"OS::Nova::Server": "theirs.yaml"}).resolve("OS::Nova::Server", "web").type == "theirs.yaml"


def test_of_equals_the_order_of_the_alphabet_decides() -> None:
    """An asterisk comes before letters and colons: the shorter pattern wins, and before the type itself."""
    entries = {"OS::Nova::Server": "exact.yaml", "OS::Nova::*": "near.yaml", "OS::*": "far.yaml"}
    assert registry(entries).resolve("OS::Nova::Server", "web").type == "far.yaml"
    del entries["OS::*"]
    assert registry(entries).resolve("OS::Nova::Server", "web").type == "near.yaml"


def test_entries_of_single_resources_go_first() -> None:
    entries = {
        "OS::Nova::Server": "all.yaml",
        "resources": {"web": {"OS::Nova::Server": "web.yaml"}, "db*": {"OS::Nova::Server": "My::Server"}},
    }
    types = {name: registry(entries).resolve("OS::Nova::Server", name).type for name in ("web", "db1", "cache")}
    assert types == {"web": "web.yaml", "db1": "My::Server", "cache": "all.yaml"}


def test_where_a_template_was_found() -> None:
    entries = {"A": "B", "B": "part.yaml"}
    assert registry(entries).resolve("A", "web") == Resolved("part.yaml", ("B",))
    assert registry({}).resolve("part.yaml", "web") == Resolved("part.yaml")


def test_a_definition_keeps_what_its_template_calls_it() -> None:
    types = registry({"A": "My::Server"})
    made = types.applied(Definition("web", "A"))
    assert (made.type, made.template_type) == ("My::Server", "A")
    assert types.applied(made) == made
    assert types.applied(Definition("db", "Other::Server")).template_type == ""


def test_settings_of_single_resources() -> None:
    single = {"web*": {"hooks": "pre-create"}, "web1": {"hooks": ["post-delete"], "restricted_actions": "replace"}}
    types = registry({"resources": single})
    web = types.applied(Definition("web1", "My::Server"))
    assert (web.hooks, web.restricted, web.template_type) == (("post-delete", "pre-create"), ("replace",), "")
    assert types.applied(Definition("db", "My::Server")).hooks == ()


@pytest.mark.parametrize(
    ("section", "left"),
    [
        ({"A": "B", "C": None}, {"A": "B"}),
        ({"A": "B", "A1": "C", "A*": None}, {}),
        ({"A*": None, "A1": "C"}, {"A1": "C"}),
        ({"base_url": "http://x/", "A": "B"}, {"A": "B"}),
        ({"resources": {"r": {}}, "res*": None}, {"resources": {"r": {}}}),
    ],
    ids=str,
)
def test_nulls_take_entries_out(section: dict[str, Any], left: dict[str, Any]) -> None:
    assert without_nulls(section) == left


def test_what_a_nested_stack_has_of_it() -> None:
    section = {
        "A": "part.yaml",
        "B": "My::Server",
        "resources": {
            "web": {"hooks": "pre-create", "inner": {"hooks": "post-create"}},
            "w*": {"other": {"B": "Other::Server"}},
            "db": {"inner": {"hooks": "pre-delete"}},
        },
    }
    inner = child_entries(section, "web", ("A",))
    resources = {"inner": {"hooks": "post-create"}, "other": {"B": "Other::Server"}}
    assert inner == {"B": "My::Server", "resources": resources}
    assert child_entries(section, "cache", ()) == {"A": "part.yaml", "B": "My::Server"}


@pytest.mark.parametrize(
    ("section", "fault", "place"),
    [
        ({"A": 1}, "HTTPBadRequest", "resource_registry.A"),
        ({"A": {"B": "C"}}, "HTTPBadRequest", "resource_registry.A"),
        ({"resources": []}, "HTTPBadRequest", "resource_registry.resources"),
        ({"resources": {"web": {"A": 1}}}, "HTTPBadRequest", "resource_registry.resources.web.A"),
        ({"resources": {"web": {"hooks": "noon"}}}, "InvalidBreakPointHook", "resource_registry.resources.web.hooks"),
        ({"resources": {"web": {"hooks": 1}}}, "InvalidBreakPointHook", "resource_registry.resources.web.hooks"),
        (
            {"resources": {"p": {"c": {"restricted_actions": ["update", "delete"]}}}},
            "InvalidRestrictedAction",
            "resource_registry.resources.p.c.restricted_actions",
        ),
    ],
    ids=str,
)
def test_what_is_wrong_is_named(section: dict[str, Any], fault: str, place: str) -> None:
    with pytest.raises(Rejected) as caught:
        check_registry(section)
    assert caught.value.fault == fault
    assert str(caught.value).startswith(f"{place}: ")
