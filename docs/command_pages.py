"""The reference of commands and settings: pages, and an example of the settings file."""

import argparse
import textwrap
from collections.abc import Mapping

from docs.type_pages import row

from homeostat.main import parser

CONFIGURATION = """\
# Configuration

This page lists every setting of the service: a flag of `homeostat serve` (and of `api` and `worker`), an environment
variable, and a key of a settings file. Flags override variables, and both override the file, `--config FILE` or
`/etc/homeostat/homeostat.toml` ([an example](homeostat.toml) with all keys). Only the owner may write the file; it has
no effect for users who may not read it. Clients read `HOMEOSTAT_URL`, `HOMEOSTAT_PROJECT`, and for `basic` access
`HOMEOSTAT_USER` and `HOMEOSTAT_PASSWORD`.

| variable | flag | default | meaning |
|---|---|---|---|""".splitlines()
SETTINGS_FILE = """\
# All settings of Homeostat with their defaults, for /etc/homeostat/homeostat.toml or --config FILE.
# Flags and environment variables override them. Only the owner of the file may write it.
# Written by docs/generate.py.""".splitlines()
EXIT_CODES: Mapping[int, str] = {
    0: "done",
    1: "the operation failed; the reason is on standard error",
    2: "wrong usage",
    3: "no service answers",
    4: "`plan --detailed-exit-code`: the plan has changes",
}


def commands_page() -> str:
    lines = [
        "# Commands",
        "",
        "This page lists all commands with their arguments, as `homeostat COMMAND --help` does.",
        "",
    ]
    for name, command in subcommands(parser()).items():
        lines += [f"## homeostat {name}", "", f"{command.description}", ""]
        lines += ["```sh", *examples(command), "```", ""]
        lines += ["| argument | meaning |", "|---|---|"]
        lines += [row(f"`{call(each)}`", meaning(each)) for each in command._actions if each.dest != "help"]
        lines.append("")
    lines += ["## Exit codes", "", "| code | meaning |", "|---|---|"]
    return "\n".join([*lines, *(row(str(code), meaning) for code, meaning in EXIT_CODES.items()), ""])


def configuration_page() -> str:
    lines = list(CONFIGURATION)
    for action in settings():
        variable = (action.help or "").rpartition("[")[2].rstrip("]")
        default = "" if action.default in (None, "", False) else f"`{action.default}`"
        lines.append(row(f"`{variable}`", f"`{action.option_strings[0]}`", default, meaning(action)))
    return "\n".join([*lines, ""])


def settings_file() -> str:
    """An example of a settings file: all settings with their defaults, none of them set."""
    lines = list(SETTINGS_FILE)
    for action in settings():
        name = action.option_strings[0].removeprefix("--")
        if name == "config":
            continue
        lines += ["", *textwrap.wrap(f"# {meaning(action)}", 100, subsequent_indent="# ")]
        lines.append(f"# {name} = {toml(action)}")
    return "\n".join([*lines, ""])


def toml(action: argparse.Action) -> str:
    if action.nargs == 0:
        return "false"
    if isinstance(action, argparse._AppendAction):
        return "[]"
    value = action.default
    return str(value) if isinstance(value, int | float) else f'"{value or ""}"'


def settings() -> list[argparse.Action]:
    actions = subcommands(parser())["serve"]._actions
    return [each for each in actions if (each.help or "").rpartition("[")[2].startswith("HOMEOSTAT_")]


def subcommands(root: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    (action,) = (each for each in root._actions if isinstance(each, argparse._SubParsersAction))
    return dict(action.choices)


def examples(command: argparse.ArgumentParser) -> list[str]:
    """The commands at the beginning of the help's epilog, below "example:"."""
    return textwrap.dedent("\n".join((command.epilog or "").split("\n\n")[0].splitlines()[1:])).splitlines()


def call(action: argparse.Action) -> str:
    """How an argument is written."""
    value = "" if action.nargs == 0 or action.choices else f" {action.metavar or action.dest.upper()}"
    if action.choices:
        value = " " + "|".join(action.choices)
    return ", ".join(action.option_strings) + value if action.option_strings else value.strip()


def meaning(action: argparse.Action) -> str:
    """Its help, without default and variable, which follow from the configuration page."""
    return ((action.help or "") % vars(action)).partition(" [HOMEOSTAT_")[0].partition(" (default: /")[0]
