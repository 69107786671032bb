"""Environments of the operator, and the templates that they name, read from files."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from homeostat.model.errors import Rejected
from homeostat.templates.registry import is_template
from homeostat.templates.shared_environments import SharedEnvironment, shared_of_texts


def read_shared(paths: Iterable[Path]) -> SharedEnvironment:
    """Templates are named by `file://` URLs, or by paths, seen from the file that names them.

    Fails: ValueError naming the file that is wrong.
    """
    found = SharedEnvironment()
    files: dict[str, str] = {}
    for path in paths:
        try:
            one = shared_of_texts({str(path): path.read_text(encoding="utf-8")})
        except (OSError, UnicodeDecodeError, Rejected) as error:
            raise ValueError(f"{path}: {error}") from error
        registry = _with_urls(one.resource_registry, path, files)
        found = replace(
            found,
            resource_registry={**found.resource_registry, **registry},
            parameter_defaults={**found.parameter_defaults, **one.parameter_defaults},
        )
    return replace(found, files=files)


def _with_urls(entries: Any, path: Path, files: dict[str, str]) -> Any:
    """The entries with templates in files under their URLs; their texts are added to `files`."""
    if isinstance(entries, dict):
        return {key: _with_urls(value, path, files) for key, value in entries.items()}
    if not isinstance(entries, str) or not is_template(entries) or entries.startswith(("http://", "https://")):
        return entries
    local = Path(unquote(urlsplit(entries).path)) if entries.startswith("file://") else path.parent / entries
    url = local.resolve().as_uri()
    try:
        files[url] = local.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} names {entries}: {error}") from error
    return url
