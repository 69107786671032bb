"""Reads the operator's environments, and the templates they name, from files."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from homeostat.model.errors import Rejected
from homeostat.templates.registry import is_template
from homeostat.templates.shared_environments import SharedEnvironment, shared_of_texts


def read_shared(paths: Iterable[Path]) -> SharedEnvironment:
    """Read the environments, which name templates by `file://` URLs, or by paths relative to the environment's file.

    Raises:
        ValueError: Names the invalid file.
    """
    merged = SharedEnvironment()
    files: dict[str, str] = {}
    for path in paths:
        try:
            environment = shared_of_texts({str(path): path.read_text(encoding="utf-8")})
        except (OSError, UnicodeDecodeError, Rejected) as error:
            raise ValueError(f"{path}: {error}") from error
        registry = _with_urls(environment.resource_registry, path, files)
        merged = replace(
            merged,
            resource_registry={**merged.resource_registry, **registry},
            parameter_defaults={**merged.parameter_defaults, **environment.parameter_defaults},
        )
    return replace(merged, files=files)


def _with_urls(entries: Any, path: Path, files: dict[str, str]) -> Any:
    """Return the entries with `file://` URLs for templates in files; add the templates' texts to `files`."""
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
