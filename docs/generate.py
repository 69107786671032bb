"""Writes the reference pages that follow from the code. `--check` only says which of them are out of date.

python docs/generate.py [--check]
"""

import argparse
import os
import sys
import textwrap
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

REFERENCE = Path(__file__).parent / "reference"
os.environ["XDG_STATE_HOME"] = "/home/you/.local/state"
for variable in [name for name in os.environ if name.startswith("HOMEOSTAT_")]:
    del os.environ[variable]
sys.path.insert(0, str(Path(__file__).parent.parent))

from docs.type_pages import row  # noqa: E402

from docs import (  # noqa: E402 - found from wherever this program is started
    access_page,
    api_pages,
    clustering_page,
    functions,
    kinds_page,
    migrations_page,
    openstack_page,
    policy_page,
    policy_pages,
    requirements_page,
    type_pages,
)
from homeostat.api import policy_text  # noqa: E402 - the same
from homeostat.main import parser  # noqa: E402 - its defaults come from the environment

GENERATED = "<!-- Written by docs/generate.py; change the code, then run `make docs`. -->\n"
CONFIGURATION = """\
# Configuration

Every setting of the service is a flag of `homeostat serve` (and of `api` and `worker`) and an environment variable;
the flag wins. A settings file, `--config FILE` or `/etc/homeostat/homeostat.toml`, has the same names, and gives way to
both: [an example](homeostat.toml) lists all of them. Only its owner may write it; users who may not read it do
without. Clients read `HOMEOSTAT_URL`, `HOMEOSTAT_PROJECT`, and for `basic` access `HOMEOSTAT_USER` and
`HOMEOSTAT_PASSWORD`.

| variable | flag | default | meaning |
|---|---|---|---|""".splitlines()
SETTINGS_FILE = """\
# Settings of Homeostat, as /etc/homeostat/homeostat.toml or for --config FILE: all that there are, with their defaults.
# Flags and environment variables go before them. Only the owner of the file may write it.
# Written by docs/generate.py.""".splitlines()
EXIT_CODES = """\
## Exit codes

| code | meaning |
|---|---|
| 0 | done |
| 1 | the operation failed; what and why is on standard error |
| 2 | wrong usage |
| 3 | no service answers |
| 4 | `plan --detailed-exit-code`: there is something to do |
""".splitlines()


# -- commands and settings ---------------------------------------------------------------------------------------------


def commands_page() -> str:
    lines = [GENERATED, "# Commands", "", "`homeostat COMMAND --help` tells the same.", ""]
    for name, command in _subcommands(parser()).items():
        lines += [f"## homeostat {name}", "", f"{command.description}", ""]
        lines += ["```sh", *(line.strip() for line in _examples(command)), "```", ""]
        lines += ["| argument | meaning |", "|---|---|"]
        lines += [row(f"`{_call(each)}`", _meaning(each)) for each in command._actions if each.dest != "help"]
        lines.append("")
    return "\n".join(lines + EXIT_CODES)


def configuration_page() -> str:
    lines = [GENERATED, *CONFIGURATION]
    for action in _settings():
        variable = (action.help or "").rpartition("[")[2].rstrip("]")
        default = "" if action.default in (None, "", False) else f"`{action.default}`"
        lines.append(row(f"`{variable}`", f"`{action.option_strings[0]}`", default, _meaning(action)))
    return "\n".join([*lines, ""])


def settings_file() -> str:
    """An example of a settings file: all settings with their defaults, none of them set."""
    lines = [*SETTINGS_FILE]
    for action in _settings():
        name = action.option_strings[0].removeprefix("--")
        if name == "config":
            continue
        lines += ["", *textwrap.wrap(f"# {_meaning(action)}", 100, subsequent_indent="# ")]
        lines.append(f"# {name} = {_toml(action)}")
    return "\n".join([*lines, ""])


def _toml(action: argparse.Action) -> str:
    if action.nargs == 0:
        return "false"
    if isinstance(action, argparse._AppendAction):
        return "[]"
    value = action.default
    return str(value) if isinstance(value, int | float) else f'"{value or ""}"'


def _settings() -> list[argparse.Action]:
    actions = _subcommands(parser())["serve"]._actions
    return [each for each in actions if (each.help or "").rpartition("[")[2].startswith("HOMEOSTAT_")]


def _subcommands(root: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    (action,) = (each for each in root._actions if isinstance(each, argparse._SubParsersAction))
    return dict(action.choices)


def _examples(command: argparse.ArgumentParser) -> list[str]:
    """The lines of the help's epilog that are commands."""
    return [line for line in (command.epilog or "").splitlines() if line.strip().startswith("homeostat ")]


def _call(action: argparse.Action) -> str:
    """How an argument is written."""
    value = "" if action.nargs == 0 or action.choices else f" {action.metavar or action.dest.upper()}"
    if action.choices:
        value = " " + "|".join(action.choices)
    return ", ".join(action.option_strings) + value if action.option_strings else value.strip()


def _meaning(action: argparse.Action) -> str:
    """Its help, without default and variable, which follow from the configuration page."""
    return ((action.help or "") % vars(action)).partition(" [HOMEOSTAT_")[0].partition(" (default: /")[0]


def functions_page() -> str:
    return f"{GENERATED}\n{functions.page()}"


# -- all of them -------------------------------------------------------------------------------------------------------


@cache
def pages() -> Mapping[str, Callable[[], str]]:
    """Path below the reference -> what writes the page. Found when it is asked for, since that takes a second."""
    return {
        "commands.md": commands_page,
        "configuration.md": configuration_page,
        "homeostat.toml": settings_file,
        "access.md": lambda: GENERATED + access_page.page(),
        "../explanation/requirements.md": lambda: GENERATED + requirements_page.page(),
        "profiles-and-policies.md": lambda: GENERATED + clustering_page.page(),
        **{
            f"{policy_pages.FOLDER}/{short}.md": partial(lambda text: f"{GENERATED}\n{text}", text)
            for short, text in policy_pages.pages().items()
        },
        "kinds.md": lambda: GENERATED + kinds_page.page(),
        "migrations.md": lambda: GENERATED + migrations_page.page(),
        "openstack.md": lambda: GENERATED + openstack_page.page(),
        "policy.md": lambda: GENERATED + policy_page.page(),
        "policy.yaml": policy_text.sample,
        "resource-types.md": lambda: GENERATED + type_pages.index_page(),
        "template-functions.md": functions_page,
        **{
            name: partial(lambda write: GENERATED + write(), write)
            for name, write in {**type_pages.pages(), **api_pages.pages()}.items()
        },
    }


def outdated() -> list[str]:
    """Names of the pages whose text on disk is not what the code says, and of those of what is no more."""
    return [*(name for name, page in pages().items() if _stored(name) != page()), *_left_over()]


def _left_over() -> list[str]:
    folders = (REFERENCE / type_pages.FOLDER, REFERENCE / api_pages.FOLDER)
    found = (str(path.relative_to(REFERENCE)) for folder in folders for path in sorted(folder.glob("*")))
    return [name for name in found if name not in pages()]


def _stored(name: str) -> str:
    path = REFERENCE / name
    return path.read_text(encoding="utf-8") if path.exists() else ""


def main() -> int:
    options = argparse.ArgumentParser(description="Write the generated reference pages.")
    options.add_argument("--check", action="store_true", help="write nothing; fail if a page is out of date")
    stale = outdated()
    if options.parse_args().check:
        sys.stderr.writelines(f"docs/reference/{name} is out of date: run `make docs`\n" for name in stale)
        return 1 if stale else 0
    for name in stale:
        if name not in pages():
            (REFERENCE / name).unlink()
            continue
        (REFERENCE / name).parent.mkdir(exist_ok=True)
        (REFERENCE / name).write_text(pages()[name](), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
