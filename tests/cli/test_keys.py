"""Keys that encrypt secrets: made by the service, changed beside it, lost."""

import os
import sqlite3
import stat
from pathlib import Path

import pytest

from tests.cli.conftest import Home

SECRET = "tr0ub4dor-and-3"
TEMPLATE = """
heat_template_version: 2018-08-31
parameters:
  password: {type: string, hidden: true}
resources:
  it: {type: OS::Heat::TestResource, properties: {value: {get_param: password}}}
  word: {type: OS::Heat::RandomString}
"""


@pytest.fixture
def template(tmp_path: Path) -> str:
    path = tmp_path / "secret.yaml"
    path.write_text(TEMPLATE)
    return str(path)


def holds(home: Home, words: str) -> list[str]:
    """Files of the state directory in which these words stand."""
    paths = [each for each in home.root.rglob("*") if each.is_file()]
    return [each.name for each in paths if words.encode() in each.read_bytes()]


@pytest.mark.heavy
def test_a_service_encrypts_with_a_key_of_its_own_which_may_change_while_it_runs(service: Home, template: str) -> None:
    done = service.run("up", template, "encrypted", "-P", f"password={SECRET}")
    assert done.code == 0, done.err
    keys = service.state.keys
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600
    assert holds(service, SECRET) == []
    before = service.run("keys", "status", "--json").json()
    assert list(before["cells"]) == [before["newest"]]

    changed = service.run("keys", "rotate", "--json")
    assert changed.code == 0, changed.err
    after = service.run("keys", "status", "--json").json()
    assert after["keys"] == [changed.json()["key"], before["newest"]]
    assert list(after["cells"]) == [after["newest"]]
    keys.write_text(keys.read_text().rpartition("\n")[0].rpartition("\n")[0] + "\n")  # the old one is not needed
    again = service.run("up", template, "encrypted", "-P", f"password={SECRET}-changed")
    assert again.code == 0, again.err
    assert holds(service, SECRET) == []
    assert service.run("doctor", "--cloud", "simulated").code == 0


def test_a_lost_file_of_keys_is_not_replaced(home: Home) -> None:
    """A new key would hide that the old one is needed."""
    assert home.run("migrate").code == 0
    columns = "id, project, name, root_id, depth, revision, action, status, reason, disable_rollback, converge"
    encrypted = "enc:v1:0badcafe:AAAA"
    with sqlite3.connect(home.state.database) as db:
        db.execute(
            f"INSERT INTO stack ({columns}, shards, created_at) "
            "VALUES ('s', 'p', 'n', 's', 0, 1, 'CREATE', 'COMPLETE', '', 1, 1, 1, 0.0)"
        )
        db.execute(
            "INSERT INTO revision (stack_id, number, kind, template, parameters, environment, files, intent, "
            "created_at) VALUES ('s', 1, 'template', '{}', ?, '{}', '{}', '', 0.0)",
            (encrypted,),
        )
    refused = home.run("worker", "--cloud", "simulated")
    assert refused.code == 1
    assert "encrypted with key 0badcafe" in refused.err
    assert "put the key file back" in refused.err
    assert not home.state.keys.exists()
    plain = home.run("worker", "--cloud", "simulated", "--encryption-keys", "none")
    assert "encrypted with key 0badcafe" in plain.err
    lost = home.run("keys", "status", "--json")
    assert (lost.code, lost.json()["lost"]) == (1, ["0badcafe"])


@pytest.mark.parametrize("process", ["serve", "api", "worker"])
def test_secrets_are_plain_only_where_a_setting_says_so(home: Home, tmp_path: Path, process: str) -> None:
    """Also before a database is migrated, or answers."""
    flags = ["--cloud", "simulated", "--database", f"postgresql+psycopg://nobody@/x?host={tmp_path}"]
    refused = home.run(process, *flags)
    assert refused.code == 2
    assert "secrets would be stored as plain text" in refused.err
    assert "--encryption-keys none" in refused.err
    if process == "serve":
        allowed = home.run(process, *flags, "--encryption-keys", "none")
        assert "plain text" not in allowed.err


def test_files_of_keys(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "my keys"
    made = home.run("keys", "generate", "--encryption-keys", str(path), "--json")
    assert made.json()["file"] == str(path)
    again = home.run("keys", "generate", "--encryption-keys", str(path))
    assert (again.code, "is there already" in again.err) == (1, True)
    missing = home.run("worker", "--cloud", "simulated", "--encryption-keys", str(tmp_path / "none there"))
    assert missing.code in (1, 2)
    assert home.run("keys", "status", "--encryption-keys", str(tmp_path)).code == 2
    assert home.run("migrate").code == 0
    os.truncate(path, 0)
    wrong = home.run("worker", "--cloud", "simulated", "--encryption-keys", str(path))
    assert (wrong.code, "holds no key" in wrong.err) == (2, True)
