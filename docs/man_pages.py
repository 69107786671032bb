"""The manual pages of the commands and of the settings file, as `man` reads them."""

import argparse
import re
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from docs.command_pages import EXIT_CODES, meaning, settings, subcommands, toml

from homeostat.main import DESCRIPTION, parser

# What is installed may be of the version before.
VERSION: str = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]["version"]
SETTINGS = "homeostat.toml"
HOME = "/home/you"
FILE = "/etc/homeostat/homeostat.toml"
CLIENT_VARIABLES: Mapping[str, str] = {
    "HOMEOSTAT_URL": "URL of the service that commands talk to",
    "HOMEOSTAT_PROJECT": "project that they work in",
    "HOMEOSTAT_USER": "user, where the service has `basic` access",
    "HOMEOSTAT_PASSWORD": "password of this user",
}
SETTINGS_TEXT = f"""\
The service, and every command that works on its database, reads its settings from `{FILE}`, if that is there and may
be read, or from the file that `--config` or `HOMEOSTAT_CONFIG` names. It is TOML. Each flag of `homeostat serve` is a
setting of the same name. A flag goes before its environment variable, and that before the file. Only the owner of the
file may write it; an unknown name, or a value that does not fit, is refused."""
NO_SERVICE = 3
"""The last exit code that all commands have."""
_LETTERS = {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}


def pages() -> Mapping[str, str]:
    """Return all pages by the paths of their files below a folder of manuals."""
    commands = subcommands(parser())
    found = {f"man1/homeostat-{name}.1": _command(name, command) for name, command in commands.items()}
    return {"man1/homeostat.1": _program(commands), **found, f"man5/{SETTINGS}.5": _settings_file()}


def _program(commands: Mapping[str, argparse.ArgumentParser]) -> str:
    lines = _head("homeostat", 1, _sentence_as_summary(DESCRIPTION))
    lines += [_bold("homeostat"), f"{_italic('COMMAND')} [{_italic('OPTION')}]... [{_italic('ARGUMENT')}]..."]
    lines += [".SH DESCRIPTION", *_text(DESCRIPTION), ".PP", "Each command has a page of its own:"]
    for name, command in commands.items():
        lines += [".TP", f".BR homeostat\\-{_escaped(name)} (1)", *_text(_sentence_as_summary(command.description))]
    lines += [".SH ENVIRONMENT"]
    for variable, what in CLIENT_VARIABLES.items():
        lines += [".TP", _bold(variable), *_text(what)]
    lines += [".PP", *_text("Each option shown with a [HOMEOSTAT_…] name can also be set by that variable.")]
    return _page([*lines, *_tail(parser().epilog, EXIT_CODES, SETTINGS)])


def _command(name: str, command: argparse.ArgumentParser) -> str:
    positional = [each for each in command._actions if not each.option_strings]
    lines = _head(f"homeostat-{name}", 1, _sentence_as_summary(command.description))
    lines += [_bold(f"homeostat {name}"), " ".join([f"[{_italic('OPTION')}]...", *map(_placed, positional)])]
    lines += [".SH DESCRIPTION", *_text(command.description)]
    for block in _blocks(command.epilog)[1:]:
        lines += _as_it_is(block) if block[0].startswith(" ") else [".PP", *_text(" ".join(block))]
    for group in command._action_groups:
        shown = [each for each in group._group_actions if each.help != argparse.SUPPRESS]
        if shown:
            title = "arguments" if group.title == "positional arguments" else str(group.title)
            lines += [f".SH {title.upper()}"]
            for action in shown:
                lines += [".TP", _written(action), *_text(_help(action))]
    codes = {code: what for code, what in EXIT_CODES.items() if code <= NO_SERVICE or f"`{name} " in what}
    return _page([*lines, *_tail(command.epilog, codes, "homeostat", SETTINGS)])


def _settings_file() -> str:
    lines = _head(SETTINGS, 5, "settings of the service Homeostat")[:-1]
    lines += [".SH DESCRIPTION", *_text(SETTINGS_TEXT), ".SH SETTINGS"]
    for action in settings():
        name = action.option_strings[0].removeprefix("--")
        if name != "config":
            lines += [".TP", f"{_bold(name)} = {_escaped(toml(action))}", *_text(f"{meaning(action)}.")]
    lines += [
        ".SH EXAMPLES",
        *_as_it_is(['database = "postgresql+psycopg://homeostat:secret@db/homeostat"', "workers = 4"]),
    ]
    return _page([*lines, *_files(), *_see_also("homeostat", "homeostat-serve")])


# -- parts of a page ---------------------------------------------------------------------------------------------------


def _head(name: str, section: int, summary: str) -> list[str]:
    title = _escaped(name.upper())
    return [
        '.\\" Written by docs/generate.py; change the code, then run `make docs`.',
        f'.TH {title} {section} "" "Homeostat {_escaped(VERSION)}" "Homeostat manual"',
        ".nh",
        ".ad l",
        ".SH NAME",
        f"{_escaped(name)} \\- {_escaped(summary)}",
        ".SH SYNOPSIS",
    ]


def _tail(epilog: str | None, codes: Mapping[int, str], *see_also: str) -> list[str]:
    lines = [".SH EXAMPLES", *_as_it_is(_blocks(epilog)[0][1:]), ".SH EXIT STATUS"]
    for code, what in codes.items():
        lines += [".TP", _bold(str(code)), *_text(what)]
    return [*lines, *_files(), *_see_also(*see_also)]


def _files() -> list[str]:
    return [".SH FILES", ".TP", f".I {_escaped(FILE)}", *_text("settings, as flags of the same names")]


def _see_also(*names: str) -> list[str]:
    sections = [f".BR {_escaped(name)} ({5 if name == SETTINGS else 1})" for name in names]
    return [".SH SEE ALSO", *(f"{each} ," for each in sections[:-1]), sections[-1]]


def _page(lines: Sequence[str]) -> str:
    return "\n".join([*lines, ""])


# -- what the parsers say ----------------------------------------------------------------------------------------------


def _blocks(epilog: str | None) -> list[list[str]]:
    """Return the lines of each paragraph of an epilog: examples come first."""
    return [block.splitlines() for block in (epilog or "").split("\n\n")]


def _placed(action: argparse.Action) -> str:
    """How an argument that has no name is written in the synopsis."""
    name = _value(action)
    return {"?": f"[{name}]", "*": f"[{name}]...", "+": f"{name}..."}.get(str(action.nargs), name)


def _written(action: argparse.Action) -> str:
    """How an option or an argument is written where it is explained."""
    if not action.option_strings:
        return _value(action)
    value = "" if action.nargs == 0 else f" {_value(action)}"
    return ", ".join(map(_bold, action.option_strings)) + value


def _value(action: argparse.Action) -> str:
    if action.choices:
        return "|".join(map(_bold, action.choices))
    return _italic(str(action.metavar or action.dest.upper()))


def _help(action: argparse.Action) -> str:
    return ((action.help or "") % vars(action)).replace(HOME, "~")


def _sentence_as_summary(text: str | None) -> str:
    text = (text or "").removesuffix(".")
    return text[:1].lower() + text[1:]


# -- roff --------------------------------------------------------------------------------------------------------------


def _text(text: str | None) -> list[str]:
    """Return the lines of a paragraph, with `code` in bold."""
    filled = textwrap.wrap(text or "", 72, break_long_words=False, break_on_hyphens=False)
    marked = re.sub(r"`([^`]+)`", "\0\\1\1", "\n".join(filled))
    lines = _escaped(marked).replace("\0", r"\fB").replace("\1", r"\fR").splitlines()
    return [_not_a_request(line) for line in lines]


def _as_it_is(lines: Sequence[str]) -> list[str]:
    """Return lines that are not filled; where each has an explanation beside it, that goes below."""
    lines = textwrap.dedent("\n".join(lines)).splitlines()
    explained = [re.fullmatch(r"(\S.*?) {2,}(.+)", line) for line in lines]
    if all(explained):
        return [each for found in explained if found for each in (".TP", _bold(found[1]), *_text(found[2]))]
    return [".RS 4", ".nf", *(_not_a_request(_escaped(line)) for line in lines), ".fi", ".RE"]


def _bold(text: str) -> str:
    return rf"\fB{_escaped(text)}\fR"


def _italic(text: str) -> str:
    return rf"\fI{_escaped(text)}\fR"


def _escaped(text: str) -> str:
    return "".join(_LETTERS.get(each) or (each if each.isascii() else rf"\[u{ord(each):04X}]") for each in text)


def _not_a_request(line: str) -> str:
    """Return a line of text such that `.` or `'` at its beginning is no request of roff."""
    return rf"\&{line}" if line.startswith((".", "'")) else line
