"""Writes the reference pages that follow from the code. `--check` only says which of them are out of date.

python docs/generate.py [--check]
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).parent / "reference"
os.environ["XDG_STATE_HOME"] = "/home/you/.local/state"
for variable in [name for name in os.environ if name.startswith("HOMEOSTAT_")]:
    del os.environ[variable]
sys.path.insert(0, str(Path(__file__).parent.parent))

from docs import functions  # noqa: E402 - found from wherever this program is started
from homeostat.cli.arguments import parser  # noqa: E402 - its defaults come from the environment
from homeostat.resources.base import ResourceType  # noqa: E402
from homeostat.resources.registry import types  # noqa: E402
from homeostat.resources.schema import Property  # noqa: E402
from homeostat.resources.support import SUPPORTED  # noqa: E402

GENERATED = "<!-- Written by docs/generate.py; change the code, then run `make docs`. -->\n"
CONFIGURATION = """\
# Configuration

Every setting of the service is a flag of `homeostat serve` (and of `api` and `worker`) and an environment variable;
the flag wins. There is no configuration file. Clients read `HOMEOSTAT_URL`, `HOMEOSTAT_PROJECT`, and for `basic`
access `HOMEOSTAT_USER` and `HOMEOSTAT_PASSWORD`.

| variable | flag | default | meaning |
|---|---|---|---|""".splitlines()
EXIT_CODES = """\
## Exit codes

| code | meaning |
|---|---|
| 0 | done |
| 1 | the operation failed; what and why is on standard error |
| 2 | wrong usage |
| 3 | no service answers |
""".splitlines()


# -- commands and settings ---------------------------------------------------------------------------------------------


def commands_page() -> str:
    lines = [GENERATED, "# Commands", "", "`homeostat COMMAND --help` tells the same.", ""]
    for name, command in _subcommands(parser()).items():
        lines += [f"## homeostat {name}", "", f"{command.description}", ""]
        lines += ["```sh", *(line.strip() for line in _examples(command)), "```", ""]
        lines += ["| argument | meaning |", "|---|---|"]
        lines += [_row(f"`{_call(each)}`", _meaning(each)) for each in command._actions if each.dest != "help"]
        lines.append("")
    return "\n".join(lines + EXIT_CODES)


def configuration_page() -> str:
    lines = [GENERATED, *CONFIGURATION]
    for action in _subcommands(parser())["serve"]._actions:
        variable = (action.help or "").rpartition("[")[2].rstrip("]")
        if variable.startswith("HOMEOSTAT_"):
            default = "" if action.default in (None, "", False) else f"`{action.default}`"
            lines.append(_row(f"`{variable}`", f"`{action.option_strings[0]}`", default, _meaning(action)))
    return "\n".join([*lines, ""])


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
    return (action.help or "").partition(" [HOMEOSTAT_")[0].partition(" (default: /")[0]


# -- resource types ----------------------------------------------------------------------------------------------------


def resource_types_page() -> str:
    names = [name for name, each in sorted(types().items()) if not each.support.hidden]
    parts = [
        GENERATED,
        "# Resource types\n",
        "*Update*: `in place`, or `replace` where a change makes a new thing, or `never` where a change is refused.",
        "A type that is not listed is refused when a template is validated.\n",
        *(f"- [{name}](#{_anchor(name)})" for name in names),
        "",
    ]
    for name in names:
        parts += _type_section(types()[name])
    return "\n".join(parts)


def _type_section(kind: ResourceType) -> Iterator[str]:
    yield f"## {kind.name}\n"
    yield f"{kind.description}\n"
    if kind.support != SUPPORTED:
        since = f" since release {kind.support.version}" if kind.support.version else ""
        yield f"**{kind.support.status.capitalize()}**{since}. {kind.support.message}".rstrip() + "\n"
    if kind.can_snapshot:
        yield "Its [deletion policy](../howto/keep-data.md) may be `Snapshot`.\n"
    rows = [_row(*cells) for name, each in kind.properties.items() for cells in _property_rows(name, each)]
    if rows:
        yield from ("| property | type | update | meaning |", "|---|---|---|---|", *rows, "")
    policies = [cells for name, each in kind.update_policy.items() for cells in _property_rows(name, each)]
    if policies:
        rows = [_row(name, kind_of_value, meaning) for name, kind_of_value, _update, meaning in policies]
        yield from ("| in `update_policy` | type | meaning |", "|---|---|---|", *rows, "")
    if kind.open_schema:
        yield "It takes any property and has any attribute.\n"
    if kind.open_attributes:
        yield "It has attributes besides these, as its properties say.\n"
    yield from ("| attribute | meaning |", "|---|---|")
    yield from (_row(f"`{name}`", each.description) for name, each in sorted(kind.attributes.items()))
    yield ""


def _property_rows(name: str, each: Property) -> Iterator[tuple[str, ...]]:
    if each.hidden:
        return
    update = "never" if each.immutable else "in place" if each.update else "replace"
    notes = [each.description]
    if each.required:
        notes.append("**Required.**")
    if each.default is not None:
        notes.append(f"Default: `{each.default}`.")
    notes += [f"{_rule(constraint.wire)}." for constraint in each.constraints]
    yield f"`{name}`", each.kind.value, update, " ".join(note for note in notes if note)
    if each.fields is not None:
        for inner, field in each.fields.items():
            yield from _property_rows(f"{name}.{inner}", field)
    elif each.items is not None and each.items.fields is not None:
        for inner, field in each.items.fields.items():
            yield from _property_rows(f"{name}[].{inner}", field)


def _rule(wire: Mapping[str, Any]) -> str:
    ((rule, value),) = wire.items()
    if rule == "allowed_values":
        return "One of " + ", ".join(f"`{each}`" for each in value)
    if isinstance(value, dict):
        return f"{rule.capitalize()}: " + ", ".join(f"{key} {each}" for key, each in value.items())
    return f"{rule.replace('_', ' ').capitalize()}: `{value}`"


def _anchor(name: str) -> str:
    return name.lower().replace("::", "")


def functions_page() -> str:
    return f"{GENERATED}\n{functions.page()}"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


# -- all of them -------------------------------------------------------------------------------------------------------

PAGES: Mapping[str, Callable[[], str]] = {
    "commands.md": commands_page,
    "configuration.md": configuration_page,
    "resource-types.md": resource_types_page,
    "template-functions.md": functions_page,
}


def outdated() -> list[str]:
    """Names of the pages whose text on disk is not what the code says."""
    return [name for name, page in PAGES.items() if _stored(name) != page()]


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
        (REFERENCE / name).write_text(PAGES[name](), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
