"""Differences between two revisions of a stack, as text.

Shared by the `homeostat` command and the plug-in of the `openstack` command. A revision has the shape of the API's
response to `…/revisions/NUMBER`.
"""

import difflib
from collections.abc import Mapping
from typing import Any

import yaml


def text_of(revision: Mapping[str, Any]) -> str:
    """Return template, environment and files of a revision as one text; empty sections are left out."""
    said = {section: revision[section] for section in ("template", "environment", "files")}
    told = {name: value for name, value in said["environment"].items() if value}
    whole = {**said, "environment": told}
    return yaml.safe_dump(whole, sort_keys=False, allow_unicode=True, width=1000)


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the lines of a unified diff; none where only hidden values differ, or nothing."""
    names = (f"revision {before['number']}", f"revision {after['number']}")
    return list(difflib.unified_diff(text_of(before).splitlines(), text_of(after).splitlines(), *names, lineterm=""))
