"""How two revisions of a stack differ, as text, for both clients. Shapes: those of `…/revisions/NUMBER` of the API."""

import difflib
from collections.abc import Mapping
from typing import Any

import yaml


def text_of(revision: Mapping[str, Any]) -> str:
    """Template, environment and files as one text."""
    said = {section: revision[section] for section in ("template", "environment", "files")}
    told = {name: value for name, value in said["environment"].items() if value}
    whole = {**said, "environment": told}
    return yaml.safe_dump(whole, sort_keys=False, allow_unicode=True, width=1000)


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Lines of a unified diff; none where they differ in hidden values at most."""
    names = (f"revision {before['number']}", f"revision {after['number']}")
    return list(difflib.unified_diff(text_of(before).splitlines(), text_of(after).splitlines(), *names, lineterm=""))
