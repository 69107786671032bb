"""Parts from which commands declare their flags: kinds of commands, options with variables, types of values."""

import os
import re
from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from homeostat.cli import settings_file
from homeostat.cli.command_index import SUMMARIES
from homeostat.cli.settings import default_state
from homeostat.cli.settings_file import VARIABLE
from homeostat.model.health_policy import VANTAGE_NAME

Commands = Any
"""Result of `add_subparsers`, for which argparse has no public type."""
Run = Callable[[Any], int]
"""Runs a command with its parsed arguments; returns the exit code."""


def add_command(commands: Commands, run: Run, name: str, example: str) -> ArgumentParser:
    """Add a command."""
    summary = SUMMARIES[name]
    command: ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example:\n  {example}",
        formatter_class=RawDescriptionHelpFormatter,
    )
    command.set_defaults(run=run)
    return command


def add_client_command(commands: Commands, run: Run, name: str, example: str) -> ArgumentParser:
    """Add a command that talks to a service."""
    command = add_command(commands, run, name, example)
    group = command.add_argument_group("service")
    add_state_directory(group)
    add_option(group, "url", "", "URL of the service (default: from the state directory)", metavar="URL")
    add_option(group, "project", "", "project (default: the user HOMEOSTAT_USER, or `default`)", metavar="NAME")
    add_json(command)
    return command


def add_operator_command(commands: Commands, run: Run, name: str, example: str) -> ArgumentParser:
    """Add a command that works on the database of a service."""
    command = add_command(commands, run, name, example)
    add_state_directory(command)
    add_database(command)
    add_json(command)
    return command


# -- flags of several commands -----------------------------------------------------------------------------------------


def add_stack_name(command: ArgumentParser) -> None:
    command.add_argument("name", metavar="NAME", help="name or id of the stack")


def add_stack_description(command: ArgumentParser, template: str | None = None) -> None:
    """Add the arguments that describe a stack: template (`"?"`: optional), name, parameters, environments."""
    command.add_argument("template", metavar="TEMPLATE", nargs=template, help="template file, - for standard input")
    command.add_argument("name", metavar="NAME", nargs="?", help="name of the stack (default: the file's name)")
    command.add_argument(
        "-P", "--parameter", metavar="K=V", action="append", default=[], help="parameter; may be repeated"
    )
    command.add_argument(
        "-e",
        "--environment",
        metavar="FILE",
        action="append",
        default=[],
        type=Path,
        help="environment; may be repeated, later ones win",
    )


def add_existing(command: ArgumentParser) -> None:
    command.add_argument(
        "--existing", action="store_true", help="in an update, keep the values of parameters that you do not set"
    )


def add_yes(command: ArgumentParser) -> None:
    command.add_argument(
        "-y",
        "--yes",
        action="store_true",
        help="do not ask; required without a terminal",
    )


def add_no_wait(command: ArgumentParser) -> None:
    command.add_argument(
        "--no-wait", action="store_true", help="return as soon as the service has accepted the request"
    )


def add_json(command: ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print JSON, and nothing else")


def add_state_directory(group: Any) -> None:
    text = f"settings file, see `homeostat --help` (default: {settings_file.USUAL}, if it is there) [{VARIABLE}]"
    group.add_argument(settings_file.FLAG, metavar="FILE", help=text)
    add_option(group, "state-dir", default_state(), "directory of the service's state", type=Path, metavar="DIR")


def add_database(command: ArgumentParser) -> None:
    add_option(command, "database", "", "database URL (default: SQLite in the state directory)", metavar="URL")


def add_encryption_keys(command: ArgumentParser) -> None:
    add_option(
        command,
        "encryption-keys",
        "",
        "key file that encrypts secrets in the database, the newest key first; none: store them as plain text (default "
        "with SQLite: `keys` in the state directory, created if needed; otherwise one has to be named)",
        metavar="FILE|none",
    )


def add_plugins(command: ArgumentParser) -> None:
    command.add_argument(
        "--plugins",
        metavar="DIR",
        action="append",
        type=Path,
        default=[Path(folder) for folder in os.environ.get("HOMEOSTAT_PLUGINS", "").split(os.pathsep) if folder],
        help="directory with modules of resource types with handlers (handle_create, …); may be repeated "
        "[HOMEOSTAT_PLUGINS]",
    )
    add_switch(command, "heat-imports", "these modules may import heat.engine although Heat is not installed")


def add_switch(group: Any, name: str, text: str) -> None:
    """Add a flag without a value, also set by a non-empty environment variable of the same name."""
    variable = _variable(name)
    on = bool(os.environ.get(variable))
    group.add_argument(f"--{name}", action="store_true", default=on, help=f"{text} [{variable}]")


def add_option(group: Any, name: str, default: Any, text: str, **more: Any) -> None:
    """Add a flag whose default comes from the environment variable of the same name."""
    variable = _variable(name)
    suffix = f" (default: {default})" if default not in (None, "") else ""
    group.add_argument(
        f"--{name}", default=os.environ.get(variable) or default, help=f"{text}{suffix} [{variable}]", **more
    )


def add_list(group: Any, name: str, text: str, metavar: str) -> None:
    """Add a flag that may be repeated; the environment variable of the same name has all values, with spaces."""
    variable = _variable(name)
    values = os.environ.get(variable, "").split()
    group.add_argument(f"--{name}", metavar=metavar, action="append", default=values, help=f"{text} [{variable}]")


def _variable(name: str) -> str:
    return f"HOMEOSTAT_{name.upper().replace('-', '_')}"


# -- types of values ---------------------------------------------------------------------------------------------------


def age_s(text: str) -> float:
    """Parse `45s`, `90m`, `12h` or `30d` into seconds."""
    match = re.fullmatch(r"(\d+)([smhd])", text)
    if match is None:
        raise ArgumentTypeError(f"{text!r} is no age: write a number with s, m, h or d, as in 30d")
    return int(match[1]) * {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}[match[2]]


def vantage_name(text: str) -> str:
    if not re.fullmatch(VANTAGE_NAME, text):
        raise ArgumentTypeError(f"{text!r} is not a name of letters, digits, ., _ and -, 64 at most")
    return text


def natural(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r} is not a number of 0 or more")
    return int(text)
