"""Finding plug-ins: what is broken is named, and everything else is there."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from homeostat.model.errors import Rejected
from homeostat.plugins import constraints, imports, loading
from homeostat.resources import registry
from homeostat.resources.discovery import BUILT_IN

GOOD = """
from homeostat.plugins import constraints, properties, resource, support

class Lamp(resource.Resource):
    '''A lamp.'''
    support_status = support.SupportStatus(support.HIDDEN, "use Example::Light", "9.0.0")
    properties_schema = {
        "bulb": properties.Schema(
            properties.Schema.STRING, constraints=[constraints.CustomConstraint("example.bulb")]
        ),
        "old": properties.Schema(properties.Schema.STRING, implemented=False),
        "settings": properties.Schema(properties.Schema.STRING, allow_conversion=True),
        "steps": properties.Schema(properties.Schema.INTEGER, constraints=[constraints.Modulo(4, 1)]),
    }

class Bulb(constraints.BaseCustomConstraint):
    def validate_with_client(self, clients, value):
        if value != "E27":
            raise ValueError("no such bulb")

def resource_mapping():
    return {"Example::%s": Lamp, "Example::Wrong": str}

def constraint_mapping():
    return {"example.bulb": Bulb}
"""
HEAT = """
from heat.common import exception
from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import constraints
from heat.engine import properties
from heat.engine import resource
from heat.engine import support
from heat.engine import translation
from heat.engine.clients import client_plugin
import heat.engine.properties

class Old(resource.Resource):
    properties_schema = {"name": heat.engine.properties.Schema(properties.Schema.STRING, _("Its name."))}

def resource_mapping():
    return {"Example::Old": Old}
"""


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    origins = set(registry.register().origins.values())
    yield
    registry.take_away({*registry.register().origins.values(), *_troubled()} - origins)
    constraints.CUSTOM.clear()
    imports.uninstall()
    for name in [each for each in sys.modules if each.startswith(loading.PACKAGE)]:
        del sys.modules[name]


def _troubled() -> set[str]:
    return {each.origin for each in registry.register().problems}


def test_modules_of_directories_are_read_and_the_broken_ones_named(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for directory, name in ((first, "One"), (second, "Two")):
        directory.mkdir()
        (directory / "lamps.py").write_text(GOOD % name)
    (first / "broken.py").write_text("import nothing_of_this_name")
    (first / "ends.py").write_text("raise SystemExit(1)")
    (first / "empty.py").write_text("x = 1")
    (first / "strange.py").write_text("def resource_mapping():\n    return 7\n")
    (first / "raising.py").write_text("def resource_mapping():\n    raise KeyError('x')\n")
    package = second / "more"
    package.mkdir()
    (package / "__init__.py").write_text("from .inner import resource_mapping\n")
    (package / "inner.py").write_text(GOOD % "Three")
    found = loading.install([first, second, tmp_path / "c"])
    names = registry.types()
    assert [f"Example::{each}" in names for each in ("One", "Two", "Three")] == [True, True, True]
    assert registry.register().origins["Example::Two"] == str(second / "lamps.py")
    reported = {(Path(each.origin).name, each.reason.partition(":")[0]) for each in found.problems}
    assert reported == {
        ("broken.py", "it cannot be loaded"),
        ("ends.py", "it cannot be loaded"),
        ("empty.py", "it has neither resource_mapping() nor constraint_mapping()"),
        ("strange.py", "resource_mapping() gives 7, not a map of names to classes"),
        ("raising.py", "resource_mapping() failed"),
        ("lamps.py", "Example"),
        ("__init__.py", "Example"),
        ("c", "there is no such directory"),
    }


def test_a_built_in_type_is_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(GOOD.replace("Example::%s", "OS::Cinder::Volume"))
    loading.install([tmp_path])
    assert registry.register().origins["OS::Cinder::Volume"] == BUILT_IN
    assert any("OS::Cinder::Volume is taken" in each.reason for each in registry.register().problems)


def test_schemas_are_those_of_the_class(tmp_path: Path) -> None:
    (tmp_path / "lamps.py").write_text(GOOD % "One")
    loading.install([tmp_path])
    lamp = registry.resource_type("Example::One")
    assert (lamp.support.hidden, lamp.support.message, lamp.description) == (True, "use Example::Light", "A lamp.")
    assert lamp.check({"settings": {"a": [1]}, "bulb": "E27", "steps": 5}) == {
        "settings": '{"a": [1]}',
        "bulb": "E27",
        "steps": 5,
    }
    for given, message in (
        ({"bulb": "E14"}, "no such bulb"),
        ({"old": "x"}, "not implemented"),
        ({"steps": 4}, "not a multiple"),
    ):
        with pytest.raises(Rejected, match=message):
            lamp.check(given)


def test_the_names_of_heat_are_given_only_when_asked_for(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text(HEAT)
    found = loading.install([tmp_path])
    assert "No module named 'heat'" in found.problems[0].reason
    registry.take_away([each.origin for each in found.problems])
    found = loading.install([tmp_path], heat_imports=True)
    assert found.problems == []
    assert registry.resource_type("Example::Old").properties["name"].description == "Its name."


def test_where_heat_is_installed_its_names_are_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "heat"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert imports.install() is False
    assert "heat.engine" not in sys.modules


def test_a_package_without_types_is_looked_into_but_for_its_tests(tmp_path: Path) -> None:
    package = tmp_path / "company"
    for folder in (package, package / "resources", package / "resources" / "tests"):
        folder.mkdir()
        (folder / "__init__.py").write_text("")
    (package / "resources" / "base.py").write_text("WORD = 'One'\n")
    (package / "resources" / "lamps.py").write_text(
        "from . import base\n" + GOOD.replace('"Example::%s"', "'Example::' + base.WORD")
    )
    (package / "resources" / "broken.py").write_text("import nothing_of_this_name")
    (package / "resources" / "tests" / "test_lamps.py").write_text("raise SystemExit(1)")
    found = loading.install([tmp_path])
    assert registry.register().origins["Example::One"] == str(package / "resources" / "lamps.py")
    reported = {(Path(each.origin).name, each.reason.partition(":")[0]) for each in found.problems}
    assert reported == {("broken.py", "it cannot be loaded"), ("lamps.py", "Example")}


def test_a_type_that_needs_more_is_left_out_and_its_neighbours_are_there(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text(
        HEAT.replace(
            "import heat.engine.properties\n",
            "import heat.engine.properties\n"
            "from heat.engine import rsrc_defn, scheduler\n"
            "from heat.engine.resources import signal_responder, stack_resource, stack_user\n"
            "from heat.engine.resources.openstack.neutron import neutron\n"
            "from heat.openstack.common import log as logging\n"
            "LOG = logging.getLogger(__name__)\n"
            "class Nest(stack_resource.StackResource):\n    '''A stack.'''\n",
        ).replace('"Example::Old": Old', '"Example::Old": Old, "Example::Nest": Nest')
    )
    found = loading.install([tmp_path], heat_imports=True)
    assert ["Example::Nest cannot be made" in each.reason for each in found.problems] == [True]
    assert "its thing is a stack of its own" in found.problems[0].reason
    assert "Example::Old" in registry.types()
