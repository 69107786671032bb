"""Revisions of a stack as text, and the differences between two of them.

Shared by the API, the `homeostat` command and the plug-in of the `openstack` command. A revision has the shape of the
API's response to `…/revisions/NUMBER`.
"""

import difflib
from collections.abc import Mapping
from typing import Any

import yaml

_SafeDumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""The one of libyaml, where there is one: it writes the same four times as fast."""


class _Dumper(_SafeDumper):  # type: ignore[misc]
    """Writes texts of several lines as blocks, as their authors do, and no references."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: Any, text: str) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def yaml_text(value: Any) -> str:
    """Return plain data as YAML, with keys in their order."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)


def text_of(revision: Mapping[str, Any]) -> str:
    """Return template, environment and files of a revision as one text; empty sections are left out."""
    said = {section: revision[section] for section in ("template", "environment", "files")}
    told = {name: value for name, value in said["environment"].items() if value}
    whole = {**said, "environment": told}
    return yaml_text(whole)


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the lines of a unified diff; none where only hidden values differ, or nothing."""
    names = (f"revision {before['number']}", f"revision {after['number']}")
    return list(difflib.unified_diff(text_of(before).splitlines(), text_of(after).splitlines(), *names, lineterm=""))
