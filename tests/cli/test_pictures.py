"""Trees, explanations, durations and bodies: pure parts of the command line, as tables."""

import io
import os
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from homeostat.cli.errors import Problem, Usage
from homeostat.cli.explain import ATTEMPTS, arranged, read, read_reason
from homeostat.cli.pictures import (
    Durations,
    StackPicture,
    at_rest,
    explained_head,
    reasons_tree,
    resources_table,
)
from homeostat.cli.stack_files import default_name, stack_body
from homeostat.cli.tree import arrange
from homeostat.cli.views import ResourceView, Snapshot, lasting, read_resource, stack_of
from homeostat.model.plan import Verb
from homeostat.model.waiting import REASONS, Why
from homeostat.planner.report.explain import COMPARE, LOOK

NOW = 1000.0


def view(name: str, status: str = "CREATE_COMPLETE", required_by: tuple[str, ...] = (), **more: Any) -> ResourceView:
    action, _, word = status.partition("_")
    return ResourceView("s", name, "OS::Nova::Server", action, word, required_by=required_by, **more)


def snapshot(
    *resources: ResourceView, status: str = "CREATE_IN_PROGRESS", explanation: dict[str, Any] | None = None
) -> Snapshot:
    stack = {
        "id": "s",
        "stack_name": "web",
        "stack_status": status,
        "stack_status_reason": "",
        "creation_time": "2026-01-01T00:00:00Z",
    }
    return Snapshot(stack, resources, explanation=explanation)


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
    def test_shows_status_reason_and_progress(self) -> None:
        failed = view("server", "CREATE_FAILED", reason="No valid host")
        text = drawn(snapshot(view("net", required_by=("server",)), failed, view("late", "INIT_COMPLETE")))
        assert "1/3" in text
        assert "✓ net" in text
        assert "✗ server" in text
        assert "No valid host" in text
        assert "○ late" in text

    def test_what_waits_says_what_the_service_says(self) -> None:
        explained = explanation(
            wire("net", reason="its status is building"), wire("port", "requires", waits_for=["net"])
        )
        text = drawn(snapshot(view("net", "CREATE_IN_PROGRESS"), view("port", "INIT_COMPLETE"), explanation=explained))
        assert "its status is building" in text
        assert "for net" in text
        assert "1 under way, 1 waiting" in text

    def test_progress_and_estimate_are_those_of_the_service(self) -> None:
        explained = explanation(estimate={"seconds": 75.0, "by": "rate", "rate": 0.1})
        text = drawn(snapshot(view("a"), explanation=explained))
        assert "1/3" in text
        assert "about 1m 15s left" in text

    def test_a_deletion_counts_what_is_gone(self) -> None:
        durations = Durations()
        durations.see([view("a"), view("b"), view("c")], NOW)
        console = Console(width=120, record=True, file=io.StringIO())
        left = snapshot(view("a"), status="DELETE_IN_PROGRESS")
        console.print(StackPicture(left).draw(durations, NOW, 40))
        assert "2/3" in console.export_text()

    def test_a_long_reason_is_cut_and_nothing_else(self) -> None:
        failed = view("server_with_a_rather_long_name", "CREATE_FAILED", reason="No valid host " * 20)
        [_, _, line] = drawn(snapshot(failed)).splitlines()
        assert "server_with_a_rather_long_name" in line
        assert "create failed" in line
        assert line.endswith("…")

    def test_a_picture_higher_than_the_screen_keeps_what_is_not_at_rest(self) -> None:
        resting = [view(f"r{number}") for number in range(100)]
        text = drawn(snapshot(*resting, view("bad", "CREATE_FAILED", reason="boom")), height=20)
        assert len(text.splitlines()) <= 20
        assert "✗ bad" in text
        assert "more" in text


def wire(name: str, why: str = "building", **more: Any) -> dict[str, Any]:
    """One reason as the API tells it."""
    return {
        "resource_name": name,
        "path": [name],
        "resource_type": "OS::Nova::Server",
        "physical_resource_id": "",
        "resource_status": "CREATE_IN_PROGRESS",
        "leftover": False,
        "why": why,
        "reason": "",
        "waits_for": [],
        "since": None,
        "released_by": "time",
        "due_at": None,
        "next": "",
        "next_at": None,
        "fails_at": None,
        "blocks": [],
        "blocks_count": 0,
        "cause": None,
        "links": [{"rel": "stack", "href": "http://h/v1/p/stacks/web/s"}],
        **more,
    }


def explanation(*reasons: dict[str, Any], **more: Any) -> dict[str, Any]:
    explained: dict[str, Any] = {
        "progress": {"planned": 3, "done": 1, "stacks": 1},
        "critical_path": None,
        "estimate": None,
        "links": [],
    }
    return {**explained, "resources": list(reasons), **more}


def printed(renderable: Any) -> str:
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(renderable)
    return "\n".join(line.rstrip() for line in console.export_text().splitlines())


def stamp(at: float) -> str:
    return f"1970-01-01T00:{int(at) // 60:02d}:{int(at) % 60:02d}Z"


class TestExplained:
    def test_a_reason_shows_all_that_is_known_of_it(self) -> None:
        reason = wire(
            "server",
            "backoff",
            reason="quota exceeded",
            since=stamp(NOW - 40),
            due_at=stamp(NOW + 9),
            next="create",
            next_at=stamp(NOW + 8),
            fails_at=stamp(NOW + 60),
            released_by="the time of the next attempt",
            blocks=["a", "b"],
            blocks_count=7,
        )
        assert printed(reasons_tree([read_reason(reason)], NOW)) == (
            "server  Nova::Server  CREATE IN PROGRESS for 40s\n"
            "  why          it will be tried again: quota exceeded\n"
            "  next         to be created, in 8.0s\n"
            "  by itself    in 9.0s\n"
            "  fails        in 1m 00s, unless it is ready by then\n"
            "  released by  the time of the next attempt\n"
            "  blocks       a, b and 5 more"
        )

    def test_what_follows_hangs_below_its_cause_in_one_line(self) -> None:
        net = wire("net", "failed", reason="quota", resource_status="CREATE_FAILED")
        port = wire("port", "requires", waits_for=["net"], resource_status="INIT_COMPLETE")
        server = wire("server", "requires", waits_for=["port", "other"], resource_status="INIT_COMPLETE")
        text = printed(reasons_tree([read_reason(each) for each in (net, server, port)], NOW))
        assert text.splitlines()[-2:] == [
            "└ port  Nova::Server  INIT COMPLETE  for net",
            "  └ server  Nova::Server  INIT COMPLETE  for port, other",
        ]

    def test_members_hang_below_their_owner(self) -> None:
        group = wire("group", cause={"path": ["group", "0"], "why": "building", "reason": "slow"})
        member = wire("0", path=["group", "0"], reason="slow")
        found = arranged([read_reason(group), read_reason(member)])
        assert [(prefix, each.path) for prefix, each in found] == [("", ("group",)), ("└ ", ("group", "0"))]
        assert "because of   group.0: it is under way, slow" in printed(reasons_tree([read_reason(group)], NOW))

    def test_a_leftover_differs_from_its_successor(self) -> None:
        new = wire("a", "leaving", waits_for=["a"], resource_status="INIT_COMPLETE")
        old = wire("a", leftover=True, resource_status="DELETE_IN_PROGRESS", blocks=["a"], blocks_count=1)
        text = printed(reasons_tree([read_reason(old), read_reason(new)], NOW))
        assert text.startswith("a (leftover)")
        assert text.endswith("└ a  Nova::Server  INIT COMPLETE  for a")

    def test_what_waits_in_a_ring_is_shown_all_the_same(self) -> None:
        ring = [wire("a", "requires", waits_for=["b"]), wire("b", "requires", waits_for=["a"])]
        assert sorted(each.name for _, each in arranged([read_reason(each) for each in ring])) == ["a", "b"]

    def test_a_chain_of_a_thousand_is_shown(self) -> None:
        chain = [wire(f"r{n}", "requires", waits_for=[f"r{n - 1}"]) for n in range(1, 1000)]
        assert len(arranged([read_reason(each) for each in chain])) == 999

    @pytest.mark.parametrize(
        ("more", "expected"),
        [
            ({}, "web is CREATE_IN_PROGRESS: 2 of 3 resources are not at rest"),
            (
                {
                    "estimate": {"seconds": 75.0, "by": "critical_path", "rate": None},
                    "critical_path": {
                        "seconds": 75.0,
                        "unknown": [{"resource_type": "OS::X", "action": "CREATE"}],
                        "resources": [{"resource_name": "a"}, {"resource_name": "b"}],
                    },
                },
                "web is CREATE_IN_PROGRESS: 2 of 3 resources are not at rest, about 1m 15s left\n"
                "  by a → b, as long as such took before; unknown: OS::X CREATE",
            ),
            (
                {"estimate": {"seconds": 30.0, "by": "rate", "rate": 0.0667}},
                "web is CREATE_IN_PROGRESS: 2 of 3 resources are not at rest, about 30s left\n"
                "  by 0.0667 resources a second",
            ),
            (
                {
                    "critical_path": {
                        "seconds": None,
                        "unknown": [{"resource_type": "OS::X", "action": "CREATE"}],
                        "resources": [],
                    }
                },
                "web is CREATE_IN_PROGRESS: 2 of 3 resources are not at rest\n"
                "  unknown how long it takes: OS::X CREATE",
            ),
        ],
    )
    def test_how_far_and_how_long(self, more: dict[str, Any], expected: str) -> None:
        assert printed(explained_head(snapshot().stack, read(explanation(**more)))) == expected

    def test_a_stack_that_waits_itself_says_so(self) -> None:
        waiting = {"why": "pause", "reason": "a batch is done", "due_at": stamp(NOW + 9), "released_by": "time"}
        text = printed(explained_head(snapshot().stack, read(explanation(waiting=waiting))))
        assert text.splitlines()[1:] == [
            f"  a pause between batches until {stamp(NOW + 9)}: a batch is done; released by time"
        ]

    def test_a_stack_that_cannot_be_observed_says_so(self) -> None:
        explained = explanation(unseen={"reason": "connection refused", "since": None})
        assert "it could not be observed since it was begun: connection refused" in drawn(
            snapshot(explanation=explained)
        )

    def test_every_reason_and_attempt_has_words(self) -> None:
        assert {str(why) for why in Why} == set(REASONS)
        assert {str(verb) for verb in Verb} | {LOOK, COMPARE} == set(ATTEMPTS)

    def test_what_is_at_rest_waits_for_nothing(self) -> None:
        text = printed(at_rest(view("a", presence="present", seen_at=NOW - 60), NOW))
        assert "it waits for nothing" in text
        assert "last seen: present; nothing new for 1m 00s" in text


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


def test_leftovers_are_read_and_shown_below_their_successor() -> None:
    leftover = {
        "physical_resource_id": "old-1",
        "resource_type": "OS::Nova::Server",
        "resource_status": "DELETE_IN_PROGRESS",
        "resource_status_reason": "state changed",
        "updated_time": "1970-01-01T00:16:40Z",
    }
    shown = {"resource_name": "a", "resource_type": "OS::Nova::Server", "resource_status": "CREATE_COMPLETE"}
    read = read_resource({**shown, "physical_resource_id": "new-1", "leftovers": [leftover]})
    lines = printed(resources_table([read])).splitlines()
    assert "new-1" in lines[-2]
    assert lines[-1].startswith("└ leftover")
    assert "old-1" in lines[-1]


def test_the_stack_of_a_resource_is_in_its_links() -> None:
    links = [{"rel": "stack", "href": "http://h/v1/p/stacks/a%20b/1234"}]
    assert stack_of({"links": links}) == {"stack_name": "a b", "id": "1234"}


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

    def test_a_template_names_no_pipe_or_device(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        for name in ("pipe", "/dev/zero", "."):
            text = f"heat_template_version: rocky\noutputs: {{a: {{value: {{get_file: {name}}}}}}}"
            with pytest.raises(Usage, match="no plain file"):
                stack_body(self.write(tmp_path, "t.yaml", text), [], [])

    def test_a_file_that_no_request_takes_is_not_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with (tmp_path / "large").open("wb") as large:
            large.truncate(2**40)
        text = "heat_template_version: rocky\noutputs: {a: {value: {get_file: large}}}"
        with pytest.raises(Usage, match="1,099,511,627,776 bytes, and a request at most 1,048,576"):
            stack_body(self.write(tmp_path, "t.yaml", text), [], [])
        monkeypatch.setenv("HOMEOSTAT_MAX_BODY", "10")
        with pytest.raises(Usage, match="at most 10: "):
            stack_body(self.write(tmp_path, "t.yaml", "heat_template_version: rocky"), [], [])

    @pytest.mark.parametrize(("path", "name"), [("a/web-tier.yaml", "web-tier"), ("web.v2.yaml", "web.v2")])
    def test_a_stack_is_named_after_its_file(self, path: str, name: str) -> None:
        assert default_name(path) == name

    @pytest.mark.parametrize("path", ["2024-web.yaml", "my app.yaml", "wéb.yaml", "-"])
    def test_a_name_that_does_not_fit_is_not_made_to(self, path: str) -> None:
        """`2024-web.yaml` and `2025-web.yaml` were one stack."""
        with pytest.raises(Usage, match=r"homeostat up .* NAME"):
            default_name(path)
