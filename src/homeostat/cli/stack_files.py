"""The input of `up`: the template, the files it names, environments and parameters, read from this machine.

Parsers are imported inside the functions on purpose: commands that read no files start without loading them.
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
"""Largest body of a request, unless the operator of the service says otherwise; and the variable that says it here."""
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
    """Return template, environment, files and parameters as the API takes them.

    Raises:
        Usage: A file cannot be read, or a parameter lacks `=`.
        Problem: A text is no template.
    """
    source = _read_template(template)
    files: dict[str, str] = {}
    _collect(_named(_template(source)), source, files)
    return {"template": source.text, **_inputs(environments, parameters, files)}


def adoption_body(document: str, environments: Sequence[Path], parameters: Sequence[str]) -> dict[str, Any]:
    """Return the document of a stack, with environment, files and parameters, as the API takes them.

    Its `stack_name` is the name that the document has, or that of its file.

    Raises:
        Usage: A file cannot be read, or a parameter lacks `=`.
        Problem: A text is no document.
    """
    from homeostat.templates import parse_document

    source = _read_template(document)
    found = _checked(source, lambda text: parse_document(text, "Adopt data"))
    name = found.get("name")
    named = name if isinstance(name, str) and name else default_name(document)
    return {"stack_name": named, "adopt_stack_data": found, **_inputs(environments, parameters, {})}


def _inputs(environments: Sequence[Path], parameters: Sequence[str], files: dict[str, str]) -> dict[str, Any]:
    """Return environment, files and parameters; `files` are those that a template names."""
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
    """Return the name of a template's file as that of its stack.

    It is the whole name or none: one that was made fit could be that of another file, whose stack would be updated.

    Raises:
        Usage: The file has no name, or one that no stack can have.
    """
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
    """Return where a template comes from: the whole path of its file, or its URL; "" for standard input."""
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
    """Return a text that the user names, or a template does (`by_template`).

    Raises:
        Usage: It cannot be read.
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
    """Check a file before it is read: a device or pipe may never end, and too large a file fits into no request.

    What users name themselves may be a pipe, such as that of a shell's `<(command)`.

    Raises:
        Usage: It is no file that can be sent.
        OSError: It cannot be looked at.
    """
    seen = path.stat()
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
    """Read every file named by `source`, and recursively those named by templates among them."""
    for name, is_template in named:
        found = _read(name, source.directory, by_template=True)
        known = name in files
        if files.setdefault(name, found.text) != found.text:
            raise Problem(f"{source.name}: another template names another file {name}: rename one of the two")
        if is_template and not known:
            _collect(_named(_template(found)), found, files)


def _named(part: Any) -> Iterator[Named]:
    """Yield files of a template: of `get_file`, and resource types that are templates."""
    pending = [part]
    while pending:
        each = pending.pop()
        if isinstance(each, Mapping):
            if isinstance(each.get("get_file"), str):
                yield each["get_file"], False
            yield from _templates([each.get("type"), each.get("Type")])
            pending += each.values()
        elif isinstance(each, list):
            pending += each


def _registered(registry: Any) -> Iterator[Named]:
    """Yield templates that an environment maps types to."""
    values = registry.values() if isinstance(registry, Mapping) else ()
    for value in values:
        yield from _registered(value)
    yield from _templates(values)


def _templates(names: Iterable[Any]) -> Iterator[Named]:
    for name in names:
        if isinstance(name, str) and name.endswith(_TEMPLATE_SUFFIXES):
            yield name, True
