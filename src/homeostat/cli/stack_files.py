"""The input of `up`: the template, the files it names, environments and parameters, read from this machine.

Parsers are imported inside functions, to keep the start of commands without files fast.
"""

import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from homeostat.cli.errors import Problem, Usage
from homeostat.model.errors import Rejected

STANDARD_INPUT = "-"
BODY_MAX, BODY_MAX_SET = 1_048_576, "HOMEOSTAT_MAX_BODY"
"""Largest body of a request by default; and the variable with the service's limit, if the operator has set another."""
_TEMPLATE_SUFFIXES = (".yaml", ".yml", ".template")
_STACK_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*\Z")
_REMOTE = ("http://", "https://")
Named = tuple[str, bool]
"""Name of a file as written, and whether it is a template."""


@dataclass(frozen=True, slots=True)
class Source:
    """A text, its origin, and the directory that its file names are relative to."""

    name: str
    text: str
    directory: Path


def stack_body(template: str, environments: Sequence[Path], parameters: Sequence[str]) -> dict[str, Any]:
    """Return template, environment, files and parameters in the format of the API.

    Raises:
        Usage: A file cannot be read, or a parameter lacks `=`.
        Problem: A text is no template.
    """
    source = _read_template(template)
    files: dict[str, str] = {}
    _collect(_named(_template(source)), source, files)
    return {"template": source.text, **_inputs(environments, parameters, files)}


def adoption_body(document: str, environments: Sequence[Path], parameters: Sequence[str]) -> dict[str, Any]:
    """Return the document of a stack, with environment, files and parameters, in the format of the API.

    The `stack_name` is the name in the document, else the name of the file.

    Raises:
        Usage: A file cannot be read, or a parameter lacks `=`.
        Problem: A text is no document.
    """
    from homeostat.templates import parse_document

    source = _read_template(document)
    parsed = _checked(source, lambda text: parse_document(text, "Adopt data"))
    name = parsed.get("name")
    named = name if isinstance(name, str) and name else default_name(document)
    return {"stack_name": named, "adopt_stack_data": parsed, **_inputs(environments, parameters, {})}


def _inputs(environments: Sequence[Path], parameters: Sequence[str], files: dict[str, str]) -> dict[str, Any]:
    """Return environment, files and parameters; `files` has the files of the template."""
    environment: dict[str, Any] = {}
    for path in environments:
        environment_source = _read(str(path), Path())
        for section, values in _environment(environment_source).items():
            before = environment.get(section)
            both_maps = isinstance(before, dict) and isinstance(values, dict)
            environment[section] = before | values if both_maps else values
        _collect(_registered(environment.get("resource_registry")), environment_source, files)
    return {
        "environment": environment,
        "files": files,
        "parameters": dict(_parameter(text) for text in parameters),
    }


def default_name(template: str) -> str:
    """Return the name of a template's file as the name of the stack.

    Raises:
        Usage: The file has no name, or its name is not valid for a stack.
    """
    # Never altered to be valid: the result could be the name of another file's stack, which would be updated.
    name = Path(template).stem
    if template == STANDARD_INPUT or not name:
        raise Usage("the stack needs a name: homeostat up TEMPLATE NAME")
    if not _STACK_NAME.match(name):
        raise Usage(
            f"{name} cannot be the name of a stack, which begins with a letter, and goes on with letters, digits, _, . "
            f"and -: name the stack yourself, as in homeostat up {template} NAME"
        )
    return name


def source_of(template: str) -> str:
    """Return the origin of a template: the absolute path of its file, or its URL; "" for standard input."""
    if template == STANDARD_INPUT or template.startswith(_REMOTE):
        return template.removeprefix(STANDARD_INPUT)
    return str(Path(template.removeprefix("file://")).expanduser().resolve())


def _parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise Usage(f"-P {text}: write it as -P NAME=VALUE")
    return name, value


def _read_template(template: str) -> Source:
    if template == STANDARD_INPUT:
        return Source("standard input", sys.stdin.read(), Path())
    return _read(template, Path())


def _read(name: str, directory: Path, *, by_template: bool = False) -> Source:
    """Read a text named by the user, or by a template (`by_template`).

    Raises:
        Usage: The text cannot be read.
    """
    if name.startswith(_REMOTE):
        return Source(name, _fetched(name), directory)
    path = directory / Path(name.removeprefix("file://")).expanduser()
    try:
        _check_file(path, by_template=by_template)
        return Source(str(path), path.read_text(encoding="utf-8"), path.parent)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise Usage(f"cannot read {path}: {reason}") from error


def _check_file(path: Path, *, by_template: bool) -> None:
    """Check type and size of a file before reading.

    Raises:
        Usage: The file cannot be sent.
        OSError: The file is missing or not accessible.
    """
    seen = path.stat()
    # A device or pipe may never end. Users themselves may name a pipe, such as a shell's `<(command)`.
    if by_template and not stat.S_ISREG(seen.st_mode):
        raise Usage(f"cannot read {path}: it is no plain file, and a template names it")
    setting = os.environ.get(BODY_MAX_SET, "")
    most = int(setting) if setting.isdecimal() else BODY_MAX
    if seen.st_size > most:
        remedy = f"if the service takes more, set {BODY_MAX_SET} to its --max-body"
        raise Usage(f"cannot read {path}: it has {seen.st_size:,} bytes, and a request at most {most:,}: {remedy}")


def _fetched(url: str) -> str:
    try:
        answer = httpx.get(url, follow_redirects=True, timeout=30.0)
        answer.raise_for_status()
    except httpx.HTTPError as error:
        raise Usage(f"cannot read {url}: {error}") from error
    return answer.text


def _template(source: Source) -> dict[str, Any]:
    from homeostat.templates import parse_template

    return _checked(source, parse_template)


def _environment(source: Source) -> dict[str, Any]:
    from homeostat.templates import parse_environment

    return _checked(source, parse_environment)


def _checked(source: Source, parse: Callable[[str], Mapping[str, Any]]) -> dict[str, Any]:
    try:
        return dict(parse(source.text))
    except Rejected as error:
        raise Problem(f"{source.name}: {error}") from error


def _collect(named: Iterable[Named], source: Source, files: dict[str, str]) -> None:
    """Read every file named by `source`, and recursively the files named by templates among them."""
    for name, is_template in named:
        file = _read(name, source.directory, by_template=True)
        known = name in files
        if files.setdefault(name, file.text) != file.text:
            raise Problem(f"{source.name}: another template names another file {name}: rename one of the two")
        if is_template and not known:
            _collect(_named(_template(file)), file, files)


def _named(part: Any) -> Iterator[Named]:
    """Yield the files named by a template: in `get_file`, and as resource types."""
    pending = [part]
    while pending:
        node = pending.pop()
        if isinstance(node, Mapping):
            if isinstance(node.get("get_file"), str):
                yield node["get_file"], False
            yield from _templates([node.get("type"), node.get("Type")])
            pending += node.values()
        elif isinstance(node, list):
            pending += node


def _registered(registry: Any) -> Iterator[Named]:
    """Yield the templates in a resource registry."""
    values = registry.values() if isinstance(registry, Mapping) else ()
    for value in values:
        yield from _registered(value)
    yield from _templates(values)


def _templates(names: Iterable[Any]) -> Iterator[Named]:
    for name in names:
        if isinstance(name, str) and name.endswith(_TEMPLATE_SUFFIXES):
            yield name, True
