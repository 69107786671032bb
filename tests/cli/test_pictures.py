"""Trees, explanations, durations and bodies: pure parts of the command line, as tables."""

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from homeostat.cli.bodies import default_name, stack_body
from homeostat.cli.explain import explain
from homeostat.cli.picture import Durations, StackPicture
from homeostat.cli.problems import Problem, Usage
from homeostat.cli.tree import arrange
from homeostat.cli.views import ResourceView, Snapshot, lasting, read_resource

NOW = 1000.0


def view(name: str, status: str = "CREATE_COMPLETE", required_by: tuple[str, ...] = (), **more: Any) -> ResourceView:
    action, _, word = status.partition("_")
    return ResourceView("s", name, "OS::Nova::Server", action, word, required_by=required_by, **more)


def snapshot(*resources: ResourceView, status: str = "CREATE_IN_PROGRESS") -> Snapshot:
    stack = {
        "id": "s",
        "stack_name": "web",
        "stack_status": status,
        "stack_status_reason": "",
        "creation_time": "2026-01-01T00:00:00Z",
    }
    return Snapshot(stack, resources)


def drawn(snapshot: Snapshot, height: int = 40) -> str:
    console = Console(width=120, height=height, record=True, file=io.StringIO(), force_terminal=False)
    durations = Durations()
    durations.see(snapshot.resources, NOW)
    console.print(StackPicture(snapshot).draw(durations, NOW, height))
    return console.export_text()


class TestTree:
    def test_a_resource_hangs_on_the_deepest_of_its_requirements(self) -> None:
        lines = arrange(
            [view("net", required_by=("port", "server")), view("port", required_by=("server",)), view("server")]
        )
        assert [(line.prefix, line.resource.name) for line in lines] == [
            ("", "net"),
            ("└ ", "port"),
            ("  └ ", "server"),
        ]

    def test_siblings_are_joined_by_branches(self) -> None:
        lines = arrange([view("net", required_by=("a", "b")), view("a", required_by=("x",)), view("b"), view("x")])
        assert [line.prefix + line.resource.name for line in lines] == ["net", "├ a", "│ └ x", "└ b"]

    def test_resources_of_a_nested_stack_hang_on_its_owner(self) -> None:
        owner = view("group", nested="inner")
        member = ResourceView("inner", "0", "OS::Nova::Server", "CREATE", "COMPLETE", parent="group")
        assert [line.prefix + line.resource.name for line in arrange([owner, member])] == ["group", "└ 0"]

    def test_every_resource_is_drawn_once_in_a_chain_of_thousands(self) -> None:
        names = [f"r{number}" for number in range(5000)]
        chain = [
            view(name, required_by=(follower,)) for name, follower in zip(names, [*names[1:], "gone"], strict=True)
        ]
        lines = arrange(chain)
        assert [line.resource.name for line in lines] == names
        assert max(len(line.prefix) for line in lines) < 40

    def test_what_requires_itself_in_a_ring_is_still_drawn(self) -> None:
        """The wire may show one moment of a stack whose dependencies are being turned round."""
        assert len(arrange([view("a", required_by=("b",)), view("b", required_by=("a",)), view("c")])) == 3


class TestPicture:
    def test_tells_status_reason_and_progress(self) -> None:
        failed = view("server", "CREATE_FAILED", reason="No valid host")
        text = drawn(snapshot(view("net", required_by=("server",)), failed, view("late", "INIT_COMPLETE")))
        assert "1/3" in text
        assert "✓ net" in text
        assert "✗ server" in text
        assert "No valid host" in text
        assert "○ late" in text

    def test_what_waits_names_what_it_waits_for(self) -> None:
        text = drawn(snapshot(view("net", "CREATE_IN_PROGRESS", ("port",)), view("port", "INIT_COMPLETE")))
        assert "waits" in text
        assert "for net" in text

    def test_a_deletion_counts_what_is_gone(self) -> None:
        durations = Durations()
        durations.see([view("a"), view("b"), view("c")], NOW)
        console = Console(width=120, record=True, file=io.StringIO())
        left = snapshot(view("a"), status="DELETE_IN_PROGRESS")
        console.print(StackPicture(left).draw(durations, NOW, 40))
        assert "2/3" in console.export_text()

    def test_a_long_reason_is_cut_and_nothing_else(self) -> None:
        failed = view("server_with_a_rather_long_name", "CREATE_FAILED", reason="No valid host " * 20)
        [_, line] = drawn(snapshot(failed)).splitlines()
        assert "server_with_a_rather_long_name" in line
        assert "create failed" in line
        assert line.endswith("…")

    def test_a_picture_higher_than_the_screen_keeps_what_is_not_at_rest(self) -> None:
        resting = [view(f"r{number}") for number in range(100)]
        text = drawn(snapshot(*resting, view("bad", "CREATE_FAILED", reason="boom")), height=20)
        assert len(text.splitlines()) <= 20
        assert "✗ bad" in text
        assert "more" in text


EXPLAINED = [
    (
        "what failed waits for the user",
        [view("a", "CREATE_FAILED", reason="No valid host", since=990.0)],
        ("a", "No valid host", "homeostat up"),
    ),
    (
        "what is in progress says what it waits for",
        [view("a", "CREATE_IN_PROGRESS", waiting="the server is building")],
        ("a", "the server is building", "the cloud showing it as wanted"),
    ),
    (
        "what was not begun waits for its requirements",
        [view("net", "CREATE_IN_PROGRESS", ("port",)), view("port", "INIT_COMPLETE")],
        ("port", "net (CREATE IN PROGRESS)", "net coming to rest"),
    ),
    (
        "a failed requirement has to be mended",
        [view("net", "CREATE_FAILED", ("port",), reason="no"), view("port", "INIT_COMPLETE")],
        ("port", "net (CREATE FAILED)", "mending net"),
    ),
    (
        "what nothing holds has its turn",
        [view("a", "INIT_COMPLETE")],
        ("a", "its turn", "a worker"),
    ),
    (
        "a deletion waits for the cloud",
        [view("a", "DELETE_IN_PROGRESS", handle="id-1")],
        ("a", "delete", "id-1 is gone"),
    ),
]


class TestExplain:
    @pytest.mark.parametrize(("reason", "resources", "expected"), EXPLAINED, ids=[case[0] for case in EXPLAINED])
    def test_names_cause_and_release(
        self, reason: str, resources: list[ResourceView], expected: tuple[str, str, str]
    ) -> None:
        name, waits_for, released_by = expected
        [found] = [each for each in explain(snapshot(*resources), NOW) if each.name == name]
        assert waits_for in found.waits_for
        assert released_by in found.released_by

    def test_leaves_out_what_is_at_rest_unless_asked_for(self) -> None:
        resting = snapshot(view("a"), view("b"))
        assert explain(resting, NOW) == []
        [found] = explain(resting, NOW, "a")
        assert "at rest" in found.waits_for

    def test_tells_since_when_and_what_was_seen(self) -> None:
        resource = view("a", "CREATE_IN_PROGRESS", since=988.0, presence="present", seen="no route", seen_at=999.5)
        [found] = explain(snapshot(resource), NOW)
        assert found.waiting_s == 12.0
        assert found.seen == "present, no route; nothing new for 0.5s"

    def test_causes_come_before_what_waits_for_them(self) -> None:
        waiting, cause = view("a", "INIT_COMPLETE"), view("z", "CREATE_FAILED", ("a",), reason="no")
        assert [each.name for each in explain(snapshot(waiting, cause), NOW)] == ["z", "a"]


@pytest.mark.parametrize(
    ("duration_s", "text"),
    [(-1.0, "0.0s"), (0.42, "0.4s"), (9.94, "9.9s"), (9.96, "9s"), (75, "1m 15s"), (7265, "2h 01m"), (90000, "1d 1h")],
)
def test_durations_are_short(duration_s: float, text: str) -> None:
    assert lasting(duration_s) == text


def test_a_resource_is_read_from_the_wire() -> None:
    read = read_resource(
        {
            "resource_name": "server",
            "resource_type": "OS::Nova::Server",
            "resource_status": "CREATE_IN_PROGRESS",
            "resource_status_reason": "state changed",
            "physical_resource_id": "id-1",
            "updated_time": "1970-01-01T00:16:40Z",
            "required_by": ["member"],
            "links": [{"rel": "stack", "href": "http://h/v1/p/stacks/web/1234"}],
            "waiting": "building",
            "observed": {
                "presence": "present",
                "seen_at": "1970-01-01T00:16:40Z",
                "reason": "no route",
            },
        }
    )
    assert read.key == ("1234", "server")
    assert (read.action, read.status, read.since) == ("CREATE", "IN_PROGRESS", NOW)
    assert (read.waiting, read.presence, read.seen, read.seen_at) == ("building", "present", "no route", NOW)


class TestBodies:
    def write(self, directory: Path, name: str, text: str) -> str:
        path = directory / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
        return str(path)

    def test_files_are_read_relative_to_the_template_that_names_them(self, tmp_path: Path) -> None:
        self.write(tmp_path, "scripts/run.sh", "#!/bin/sh")
        self.write(tmp_path, "inner.yaml", "heat_template_version: rocky\noutputs: {a: {value: {get_file: deep.txt}}}")
        self.write(tmp_path, "deep.txt", "deep")
        template = self.write(
            tmp_path,
            "outer.yaml",
            "heat_template_version: rocky\n"
            "resources:\n"
            "  a: {type: OS::Heat::Value, properties: {value: {get_file: scripts/run.sh}}}\n"
            "  b: {type: inner.yaml}\n",
        )
        assert stack_body(template, [], [])["files"] == {
            "scripts/run.sh": "#!/bin/sh",
            "inner.yaml": (tmp_path / "inner.yaml").read_text(),
            "deep.txt": "deep",
        }

    def test_a_file_that_is_no_template_is_not_read_as_one(self, tmp_path: Path) -> None:
        self.write(tmp_path, "cloud.yaml", "#cloud-config\nget_file: nowhere.txt")
        template = self.write(
            tmp_path, "t.yaml", "heat_template_version: rocky\noutputs: {a: {value: {get_file: cloud.yaml}}}"
        )
        assert list(stack_body(template, [], [])["files"]) == ["cloud.yaml"]

    def test_later_environments_win(self, tmp_path: Path) -> None:
        template = self.write(tmp_path, "t.yaml", "heat_template_version: rocky")
        first = Path(self.write(tmp_path, "1.yaml", "parameters: {a: 1, b: 1}"))
        second = Path(self.write(tmp_path, "2.yaml", "parameters: {b: 2}"))
        assert stack_body(template, [first, second], [])["environment"]["parameters"] == {"a": 1, "b": 2}

    def test_parameters_may_contain_equals_signs(self, tmp_path: Path) -> None:
        template = self.write(tmp_path, "t.yaml", "heat_template_version: rocky")
        assert stack_body(template, [], ["a=b=c", "d="])["parameters"] == {"a": "b=c", "d": ""}

    @pytest.mark.parametrize(
        ("text", "parameters", "error", "words"),
        [
            ("a: [", [], Problem, "t.yaml"),
            ("heat_template_version: rocky\nx: {get_file: gone.txt}", [], Usage, "gone.txt: No such file"),
            ("heat_template_version: rocky", ["novalue"], Usage, "-P NAME=VALUE"),
        ],
    )
    def test_mistakes_name_the_place(
        self, tmp_path: Path, text: str, parameters: list[str], error: type[Problem], words: str
    ) -> None:
        with pytest.raises(error, match=words):
            stack_body(self.write(tmp_path, "t.yaml", text), [], parameters)

    @pytest.mark.parametrize(("path", "name"), [("a/web-tier.yaml", "web-tier"), ("1 my app!.yaml", "my-app-")])
    def test_a_stack_is_named_after_its_file(self, path: str, name: str) -> None:
        assert default_name(path) == name
