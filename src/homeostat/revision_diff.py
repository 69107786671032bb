"""Revisions of a stack as text, and differences between two revisions, for the API and both command lines.

A revision has the shape of the API's response to `…/revisions/NUMBER`.
"""

import difflib
from collections.abc import Mapping
from typing import Any

import yaml

_SafeDumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""The dumper of libyaml, if available: four times as fast, with the same output."""


class _Dumper(_SafeDumper):  # type: ignore[misc]
    """Writes texts of several lines as blocks, and no references."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: Any, text: str) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def yaml_text(value: Any) -> str:
    """Return plain data as YAML, with keys in their order."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)


def text_of(revision: Mapping[str, Any]) -> str:
    """Return template, environment and files of a revision as a text, without empty sections of the environment."""
    environment = {name: value for name, value in revision["environment"].items() if value}
    return yaml_text({"template": revision["template"], "environment": environment, "files": revision["files"]})


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the lines of a unified diff; empty if nothing, or only hidden values, differ."""
    names = (f"revision {before['number']}", f"revision {after['number']}")
    return list(difflib.unified_diff(text_of(before).splitlines(), text_of(after).splitlines(), *names, lineterm=""))
