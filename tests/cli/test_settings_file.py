"""The settings file: what it says, what goes before it, and what is refused of it."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from homeostat.cli import settings_file
from homeostat.cli.errors import Usage
from homeostat.main import parser

REFERENCE = Path(__file__).parents[2] / "docs/reference/homeostat.toml"


def written(folder: Path, text: str) -> Path:
    file = folder / "homeostat.toml"
    file.write_text(text, encoding="utf-8")
    return file


def applied(file: Path, **variables: str) -> dict[str, str]:
    """The environment after the file was read."""
    settings_file.apply([parser()], ["serve", f"--config={file}"], variables)
    return variables


def test_the_environment_goes_before_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, 'workers = 4\nlog-json = true\nfetch-from = ["10.0.0.0/8", "pages"]\nport = 8005\n')
    found = applied(file, HOMEOSTAT_PORT="1234", HOMEOSTAT_LOG_JSON="")
    assert found == {
        "HOMEOSTAT_WORKERS": "4",
        "HOMEOSTAT_LOG_JSON": "1",
        "HOMEOSTAT_FETCH_FROM": "10.0.0.0/8 pages",
        "HOMEOSTAT_PORT": "1234",
    }
    plugins = applied(written(tmp_path, 'plugins = ["/a b", "/c"]'))
    assert plugins == {"HOMEOSTAT_PLUGINS": f"/a b{os.pathsep}/c"}


def test_the_file_of_the_variable_is_read_and_none_where_there_is_none(tmp_path: Path) -> None:
    variables = {settings_file.VARIABLE: str(written(tmp_path, "workers = 3"))}
    assert settings_file.apply([parser()], ["serve"], variables)
    assert variables["HOMEOSTAT_WORKERS"] == "3"
    nothing: dict[str, str] = {}
    if not settings_file.USUAL.exists():
        assert not settings_file.apply([parser()], ["serve"], nothing)
    assert nothing == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("workrs = 4", "there is no setting workrs; did you mean workers?"),
        ("zzz = 4", "there is no setting zzz; `homeostat serve --help` has all of them"),
        ("config = 'x'", "there is no setting config"),
        ("workers = ", "is no TOML: "),
        ("[workers]\na = 1", "workers is a text, a number, true or false, or a list of texts"),
        ("fetch-from = [1.5]", "fetch-from is a text, a number"),
    ],
)
def test_what_does_not_fit_is_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(Usage, match=r"homeostat\.toml") as found:
        applied(written(tmp_path, text))
    assert said in str(found.value)


def test_the_usual_file_is_for_those_who_may_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path, "workers = 3")
    monkeypatch.setattr(settings_file, "USUAL", file)
    found: dict[str, str] = {}
    monkeypatch.setattr(os, "access", lambda path, _: path != file)
    assert not settings_file.apply([parser()], ["up"], found)
    monkeypatch.setattr(os, "access", lambda path, _: True)
    assert settings_file.apply([parser()], ["up"], found)
    assert found == {"HOMEOSTAT_WORKERS": "3"}


def test_a_file_that_others_may_write_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, "workers = 4")
    file.chmod(0o664)
    with pytest.raises(Usage, match="chmod go-w"):
        applied(file)
    with pytest.raises(Usage, match="cannot be read: No such file"):
        applied(tmp_path / "none.toml")


def test_the_example_in_the_reference_has_every_setting(tmp_path: Path) -> None:
    lines = REFERENCE.read_text(encoding="utf-8").splitlines()
    given = "\n".join(line.removeprefix("# ") for line in lines if " = " in line and line.startswith("# "))
    settings = tomllib.loads(given)
    assert {"database", "workers", "access", "vantage", "fetch-from"} <= settings.keys()
    file = written(tmp_path, given)
    assert applied(file).keys() == {settings_file.variables(parser())[name] for name in settings}


def test_a_command_takes_its_settings_from_it(tmp_path: Path) -> None:
    file = written(tmp_path, f'state-dir = "{tmp_path}/state"\nworkers = 0\n')
    variables = {name: value for name, value in os.environ.items() if not name.startswith("HOMEOSTAT_")}
    call = [sys.executable, "-m", "homeostat", "doctor", "--json", "--config", str(file)]
    ended = subprocess.run(call, env=variables, capture_output=True, text=True, check=False)
    assert f"{tmp_path}/state" in ended.stdout + ended.stderr
