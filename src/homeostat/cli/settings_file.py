"""The settings file: values for all settings with an environment variable, which takes precedence.

The file is TOML, with the names of the flags of `homeostat serve`: `workers = 4`, `fetch-from = ["10.0.0.0/8"]`.
"""

import os
import stat
from argparse import SUPPRESS, ArgumentParser, _SubParsersAction
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from homeostat.cli.errors import Usage

FLAG, VARIABLE = "--config", "HOMEOSTAT_CONFIG"
USUAL = Path("/etc/homeostat/homeostat.toml")
"""The default file, used if it exists and is readable."""
BY_PATH = "plugins"
"""The list whose variable separates items by `os.pathsep` instead of spaces."""


def apply(parsers: Iterable[ArgumentParser], argv: Sequence[str], environment: MutableMapping[str, str]) -> bool:
    """Add the settings of the file to the environment, if not set there; return whether the file has any.

    Args:
        parsers: Define the names of settings; the next one is taken if names are missing in the last.
        argv: The command line, which may name the file.
        environment: The variables.

    Raises:
        Usage: The file cannot be read, is writable by other users, or has an invalid name or value.
    """
    named = _named(argv) or environment.get(VARIABLE)
    file = Path(named) if named else USUAL
    # The file is for the service. Users of this machine who may not read it only run client commands.
    if not named and not os.access(file, os.R_OK):
        return False
    settings = _read(file)
    known = _known(parsers, settings)
    for name, value in settings.items():
        if name not in known:
            from difflib import get_close_matches

            close = get_close_matches(name, known, 1)
            hint = f"; did you mean {close[0]}?" if close else "; `homeostat serve --help` has all of them"
            raise Usage(f"{file}: there is no setting {name}{hint}")
        text = _text(file, name, value)
        environment[known[name]] = environment.get(known[name]) or text
    return bool(settings)


def _known(parsers: Iterable[ArgumentParser], settings: Mapping[str, Any]) -> Mapping[str, str]:
    known: Mapping[str, str] = {}
    for parser in parsers:
        known = variables(parser)
        if settings.keys() <= known.keys():
            break
    return known


def variables(parser: ArgumentParser) -> dict[str, str]:
    """Return name of a flag -> environment variable, as documented in its help."""
    names: dict[str, str] = {}
    for command in commands_of(parser):
        for action in command._actions:
            variable = (action.help or "").rpartition("[")[2].rstrip("]") if action.help != SUPPRESS else ""
            if variable.startswith("HOMEOSTAT_") and action.option_strings:
                names[action.option_strings[-1].removeprefix("--")] = variable
    names.pop(FLAG.removeprefix("--"), None)
    return names


def commands_of(parser: ArgumentParser) -> Iterator[ArgumentParser]:
    """Return the parsers of all commands."""
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            yield from action.choices.values()


def _named(argv: Sequence[str]) -> str | None:
    for place, word in enumerate(argv):
        if word == FLAG and place + 1 < len(argv):
            return argv[place + 1]
        if word.startswith(f"{FLAG}="):
            return word.partition("=")[2]
    return None


def _read(file: Path) -> Mapping[str, Any]:
    import tomllib

    try:
        with file.open("rb") as source:
            rights = os.fstat(source.fileno())
            if rights.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise Usage(f"{file}: others may write it, and so choose what the service does: chmod go-w {file}")
            return tomllib.load(source)
    except tomllib.TOMLDecodeError as error:
        raise Usage(f"{file} is no TOML: {error}") from error
    except OSError as error:
        raise Usage(f"{file} cannot be read: {error.strerror}") from error


def _text(file: Path, name: str, value: Any) -> str:
    """Return a value in the format of an environment variable."""
    if isinstance(value, bool):
        return "1" if value else ""
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list) and all(isinstance(item, str | int) for item in value):
        return (os.pathsep if name == BY_PATH else " ").join(map(str, value))
    raise Usage(f"{file}: {name} is a text, a number, true or false, or a list of texts, not {value!r:.100}")
