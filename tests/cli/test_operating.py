"""The commands of operators."""

from pathlib import Path

import pytest

from tests.cli.conftest import Home
from tests.cli.templates import QUICK


@pytest.mark.heavy
def test_doctor_and_purge_beside_a_running_service(service: Home, tmp_path: Path) -> None:
    template = tmp_path / "quick.yaml"
    template.write_text(QUICK)
    for act in (["up", str(template), "short-lived"], ["down", "short-lived", "-y"]):
        done = service.run(*act)
        assert done.code == 0, done.err

    found = service.run("doctor", "--cloud", "simulated", "--json")
    assert found.code == 0, found.out
    assert {check["level"] for check in found.json()["checks"]} == {"ok"}

    foretold = service.run("purge", "--older-than", "0s", "--dry-run", "--json").json()
    assert foretold["removed"]["stacks"] > 0
    removed = service.run("purge", "--older-than", "0s", "--json").json()
    assert removed == {"dry_run": False, "removed": foretold["removed"]}
    assert "short-lived" not in service.run("list", "--json").out


def test_where_no_service_has_been(home: Home) -> None:
    found = home.run("doctor")
    assert found.code == 1
    assert "there is no file" in found.out
    refused = home.run("purge", "--json")
    assert refused.code == 1
    assert "--state-dir" in refused.json()["error"]["message"]
    assert not home.root.exists()


def test_a_worker_needs_a_schema_and_a_board(home: Home) -> None:
    worker = ("worker", "--cloud", "simulated", "--board", "redis://127.0.0.1:1/0")
    refused = home.run(*worker)
    assert refused.code == 1
    assert "run `homeostat migrate --phase expand`" in refused.err
    done = home.run("migrate", "--phase", "expand", "--json").json()
    assert done["heads"] != []
    assert (done["missing"], done["outdating"]) == ([], [])
    assert home.run("migrate").out == f"The schema is at {', '.join(done['heads'])}.\n"
    refused = home.run(*worker)
    assert refused.code == 1
    assert "look at --board" in refused.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["purge", "--older-than", "a month"], "30d"),
        (["purge", "--events-per-stack", "-1"], "0 or more"),
        (["doctor", "--database", "nonsense"], "--database"),
    ],
)
def test_arguments_that_make_no_sense(home: Home, arguments: list[str], words: str) -> None:
    refused = home.run(*arguments)
    assert refused.code in (1, 2)
    assert words in refused.err


def test_types_say_where_they_come_from(home: Home) -> None:
    found = home.run("types", "OS::Cinder::Volume$", "--json").json()
    assert found == [{"resource_type": "OS::Cinder::Volume", "origin": "built in", "support_status": "SUPPORTED"}]
    refused = home.run("types", "(A{999}){999}", "--json")
    assert refused.code == 2
    assert "too complicated" in refused.json()["error"]["message"]


def test_policies(home: Home, tmp_path: Path) -> None:
    rules = {row["rule"]: row["allows"] for row in home.run("policy", "list", "--json").json()}
    assert (rules["stacks:show"], rules["stacks:create"]) == ("readers", "members")
    path = tmp_path / "policy.yaml"
    path.write_text(home.run("policy", "generate").out)
    assert home.run("policy", "check", str(path), "--json").json() == [], "a sample changes nothing"
    path.write_text('"stacks:create": "role:operator"\n')
    (changed,) = home.run("policy", "check", str(path), "--json").json()
    assert (changed["rule"], changed["here"]) == ("stacks:create", "role:operator")
    path.write_text('\n"stacks:creat": "role:operator"\n')
    wrong = home.run("policy", "check", str(path))
    assert wrong.code == 1
    assert "line 2: there is no rule stacks:creat; do you mean stacks:create?" in wrong.err
    refused = home.run("serve", "--policy-file", str(path))
    assert refused.code == 2
    assert "--policy-file" in refused.err
    assert home.run("policy", "check").code == 2
