"""The reference of commands and settings: pages, and an example of the settings file."""

import argparse
import textwrap
from collections.abc import Mapping

from docs.type_pages import row

from homeostat.main import parser

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
EXIT_CODES: Mapping[int, str] = {
    0: "done",
    1: "the operation failed; what and why is on standard error",
    2: "wrong usage",
    3: "no service answers",
    4: "`plan --detailed-exit-code`: there is something to do",
}


def commands_page() -> str:
    lines = ["# Commands", "", "`homeostat COMMAND --help` tells the same.", ""]
    for name, command in subcommands(parser()).items():
        lines += [f"## homeostat {name}", "", f"{command.description}", ""]
        lines += ["```sh", *(line.strip() for line in examples(command)), "```", ""]
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
    """The lines of the help's epilog that are commands."""
    return [line for line in (command.epilog or "").splitlines() if line.strip().startswith("homeostat ")]


def call(action: argparse.Action) -> str:
    """How an argument is written."""
    value = "" if action.nargs == 0 or action.choices else f" {action.metavar or action.dest.upper()}"
    if action.choices:
        value = " " + "|".join(action.choices)
    return ", ".join(action.option_strings) + value if action.option_strings else value.strip()


def meaning(action: argparse.Action) -> str:
    """Its help, without default and variable, which follow from the configuration page."""
    return ((action.help or "") % vars(action)).partition(" [HOMEOSTAT_")[0].partition(" (default: /")[0]
