"""Types of others: a broken plug-in stops nothing, and a name belongs to the first who has it."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from homeostat.clouds.combined import JoinedCloud
from homeostat.clouds.installed import installed_clouds
from homeostat.clouds.port import Creation
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.model.errors import Rejected, Transient
from homeostat.notifications.sinks import Sinks, installed_sinks
from homeostat.resources import registry
from homeostat.resources.base import ResourceType
from homeostat.resources.discovery import BUILT_IN, Offer, registered

GOOD = """
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.resources.base import ResourceType
from homeostat.resources.schema import text

class Lamp(ResourceType):
    name = "Example::Lamp"
    kind = "lamp"
    properties = {"colour": text(update=True)}

class Volume(ResourceType):
    name = "OS::Cinder::Volume"

TYPES = [Lamp, Volume]
NOT_TYPES = 7

class Lamps(SimulatedCloud):
    name = "lamps"
    kinds = frozenset({"lamp", "server"})

def cloud(project):
    if project == "poor":
        raise RuntimeError("no lamps for you")
    return Lamps(lambda: 1.0)
"""


def install(root: Path, name: str, module: str, points: str) -> None:
    """A package as an installer leaves it: a module, and what its metadata say."""
    (root / f"{name}.py").write_text(module)
    info = root / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of installed packages; the register is as before afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    registry.register.cache_clear()
    yield tmp_path
    monkeypatch.undo()
    registry.register.cache_clear()
    for name in ("lamps", "broken", "exits", "pigeons"):
        sys.modules.pop(name, None)


def test_a_broken_package_is_named_and_everything_else_is_there(packages: Path) -> None:
    install(packages, "broken", "import nothing_of_this_name", "[homeostat.resources]\nx = broken:TYPES\n")
    install(packages, "exits", "raise SystemExit(3)", "[homeostat.resources]\nx = exits:TYPES\n")
    install(packages, "lamps", GOOD, "[homeostat.resources]\nlamps = lamps:TYPES\nnone = lamps:NOT_TYPES\n")
    found = registry.register()
    assert found.origins["Example::Lamp"] == "lamps 1.0 (lamps)"
    assert found.origins["OS::Nova::Server"] == BUILT_IN
    assert [(each.origin, each.reason) for each in found.problems] == [
        (
            "broken 1.0 (x)",
            "broken:TYPES cannot be loaded: ModuleNotFoundError(\"No module named 'nothing_of_this_name'\")",
        ),
        ("exits 1.0 (x)", "exits:TYPES cannot be loaded: SystemExit(3)"),
        ("lamps 1.0 (lamps)", "OS::Cinder::Volume is taken: built in has it already"),
        ("lamps 1.0 (none)", "it gives 7, not a list of resource types"),
    ]


def test_of_two_types_with_one_name_the_first_counts() -> None:
    class First(ResourceType):
        name = "Example::One"

    class Second(ResourceType):
        name = "Example::One"

    class Bad(ResourceType):
        name = "Example::Bad"

        def __init__(self) -> None:
            raise ValueError("not today")

    found = registered([Offer("a", [First]), Offer("b", [Second, Bad, str]), Offer("c", [])])  # type: ignore[list-item]
    assert isinstance(found.types["Example::One"], First)
    assert [each.reason for each in found.problems] == [
        "Example::One is taken: a has it already",
        "Example::Bad cannot be made: ValueError('not today')",
        "<class 'str'> is no subclass of ResourceType with a name",
    ]


def test_what_is_added_can_be_taken_away() -> None:
    class Added(ResourceType):
        name = "Example::Added"

    registry.add([Offer("here", [Added])])
    assert "Example::Added" in registry.types()
    registry.take_away(["here"])
    assert "Example::Added" not in registry.types()


def test_the_cloud_of_a_package_serves_its_own_kinds_only(packages: Path) -> None:
    install(packages, "lamps", GOOD, "[homeostat.clouds]\nlamps = lamps:cloud\nnone = lamps:NOT_TYPES\n")
    found = installed_clouds()
    assert [each.reason for each in found.problems] == ["7 is no function of a project"]
    (lamps,) = found.of("p")
    assert found.of("p") == [lamps], "one adapter a project"
    own = SimulatedCloud(lambda: 1.0)
    both = JoinedCloud(own, lamps)
    both.create("lamp", [Creation("t", {"colour": "red"})])
    both.create("server", [Creation("s", {})])
    assert [list(each) for each in (lamps.things(), own.things())] == [["lamp-1"], ["server-1"]]  # type: ignore[attr-defined]


def test_a_cloud_that_cannot_be_made_is_missed_by_its_own_kinds_only(packages: Path) -> None:
    install(packages, "lamps", GOOD, "[homeostat.clouds]\nlamps = lamps:cloud\n")
    rest = JoinedCloud(SimulatedCloud(lambda: 1.0), *installed_clouds().of("poor"))
    assert rest.observe("server", []) == []
    with pytest.raises(Transient, match="the kind lamp"):
        rest.observe("lamp", ["lamp-1"])


# -- event sinks -------------------------------------------------------------------------------------------------------

SINKS = """
class Pigeon:
    name = "pigeon"

    def check(self, project, settings):
        if "loft" not in settings:
            raise ValueError("loft: a place to fly to is needed")

    def post(self, project, settings, body):
        print(project, settings["loft"], body["id"])

class Hook(Pigeon):
    name = "webhook"

class Nameless:
    pass
"""


def test_packages_bring_kinds_of_event_sinks(packages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    points = "[homeostat.event_sinks]\na = pigeons:Pigeon\nb = pigeons:Hook\nc = pigeons:Nameless\nd = pigeons:Lost\n"
    install(packages, "pigeons", SINKS, points)
    installed = installed_sinks()
    reasons = {problem.origin: problem.reason for problem in installed.problems}
    assert list(reasons) == ["pigeons 1.0 (d)", "pigeons 1.0 (b)", "pigeons 1.0 (c)"]
    assert reasons["pigeons 1.0 (b)"] == "the name webhook is taken"
    sinks = Sinks(installed=installed.kinds)
    with pytest.raises(Rejected, match=r"event_sinks\[0\]: loft: a place"):
        sinks.check("p", [{"type": "pigeon"}])
    sinks.post("p", {"type": "pigeon", "loft": "home"}, {"id": "1"})
    assert capsys.readouterr().out == "p home 1\n"


def test_a_kind_that_is_not_there_any_more_is_waited_for() -> None:
    with pytest.raises(Transient, match="no package here has event sinks of type pigeon"):
        Sinks().post("p", {"type": "pigeon"}, {})
