"""Finding templates in a folder, with their environments and the files that they name, as their authors meant it."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from homeostat.model.errors import Rejected
from homeostat.templates import parse_environment, parse_template

SUFFIXES = (".yaml", ".yml", ".template", ".json")
TYPE_SUFFIXES = (".yaml", ".template")
"""Types with these endings name files: what clients send along."""
VERSIONS = ("heat_template_version", "HeatTemplateFormatVersion", "AWSTemplateFormatVersion")
VERSION_ADDED = "2016-10-14"
_WORD = re.compile(rf"^\W*({'|'.join(VERSIONS)})\b", re.MULTILINE)
_ENVIRONMENT = re.compile(r"(?P<stem>.+?)[-_]?env(ironment)?([-_].*)?$", re.IGNORECASE)
MISSING = "# made up\n"
_ADDRESS = re.compile(
    r"https?://(raw\.github(usercontent)?\.com/(?P<owner>[^/]+)/(?P<name>[^/]+)|"
    r"github\.com/(?P<owner_>[^/]+)/(?P<name_>[^/]+)/(raw|blob))/[^/]+/(?P<path>.+)"
)
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """One template to try.

    path — below the folder, with `/`; repository — the first part of it, where there are several; template — the text
    as it is if it does not parse; environment_path — where the environment is from, "" for none; part — other
    templates use it as a type.
    """

    path: str
    repository: str
    text: str
    template: Document | str
    files: Mapping[str, str] = field(default_factory=dict)
    environment: Document = field(default_factory=dict)
    environment_path: str = ""
    part: bool = False


class Corpus:
    """A folder of templates. others — files that look like templates by their names but are something else."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._texts = {
            path.relative_to(root).as_posix(): path.read_text(encoding="utf-8", errors="replace")
            for path in sorted(root.rglob("*"))
            if path.is_file() and path.suffix in (*SUFFIXES, ".env")
        }
        self._documents = {path: _parsed(text, parse_template) for path, text in self._texts.items()}
        self._templates = [path for path in self._texts if self._is_template(path)]
        self._environments = {path: self._environment(path) for path in self._texts if path not in self._templates}
        self.others = len(self._texts) - len(self._templates) - sum(bool(each) for each in self._environments.values())

    def cases(self, only: str = "") -> Iterator[Case]:
        """Those whose path holds `only`, in the order of their paths; what lacks a version a second time, with one."""
        parts = {name for path in self._templates for name in self._used_by(path)}
        for path in self._templates:
            if only in path:
                case = self._case(path, path in parts)
                yield case
                if isinstance(case.template, dict) and not any(each in case.template for each in VERSIONS):
                    yield _with_version(case)

    def _case(self, path: str, part: bool) -> Case:
        files: dict[str, str] = {}
        document = self._documents[path]
        template = self._texts[path] if document is None else self._named(document, path, files)
        environment_path = self._environment_of(path)
        environment = self._environments.get(environment_path) or {}
        if "resource_registry" in environment:
            registry = self._registered(environment["resource_registry"], environment_path, files)
            environment = {**environment, "resource_registry": registry}
        repository = path.partition("/")[0] if "/" in path else ""
        return Case(path, repository, self._texts[path], template, files, environment, environment_path, part)

    def _is_template(self, path: str) -> bool:
        """Also what only tries to be one: its version is missing, or it is no YAML."""
        document = self._documents[path]
        if path.endswith(".env"):
            return False
        if document is None:
            return _WORD.search(self._texts[path]) is not None
        if any(each in document for each in VERSIONS):
            return True
        return not path.endswith(".json") and any(
            isinstance(document.get(each), dict) for each in ("resources", "Resources")
        )

    # -- environments ------------------------------------------------------------------------------------------------

    def _environment(self, path: str) -> Document | None:
        if path.endswith(".env") or _ENVIRONMENT.fullmatch(Path(path).stem):
            return _parsed(self._texts[path], parse_environment)
        return None

    def _environment_of(self, path: str) -> str:
        """Where the environment of a template is: next to it by its name, or else one that makes its types known."""
        folder, stem = os.path.split(os.path.splitext(path)[0])
        for each, environment in self._environments.items():
            if environment and os.path.dirname(each) == folder and _belongs(each, stem):
                return each
        wanted = set(types_within(self._documents[path])) if self._documents[path] is not None else set()
        declared = (self._documents[path] or {}).get("parameters") or {}
        known = [
            each
            for each, environment in self._environments.items()
            if environment
            and wanted & _maps(environment.get("resource_registry"))
            and set(environment.get("parameters") or {}) <= set(declared)
        ]
        return max(known, key=lambda each: len(os.path.commonpath([each, path])), default="")

    # -- files -------------------------------------------------------------------------------------------------------

    def _named(self, part: Any, source: str, files: dict[str, str]) -> Any:
        """The same, where files have names that are clear wherever they are used; their texts are put into `files`."""
        if isinstance(part, list):
            return [self._named(each, source, files) for each in part]
        if not isinstance(part, dict):
            return part
        found = {name: self._named(each, source, files) for name, each in part.items()}
        if isinstance(part.get("get_file"), str):
            found["get_file"] = self._text(part["get_file"], source, files)
        if isinstance(part.get("type"), str):
            found["type"] = self._type(part["type"], source, files)
        if isinstance(part.get("TemplateURL"), str):
            self._fetched(part["TemplateURL"], files)
        return found

    def _fetched(self, url: str, files: dict[str, str]) -> None:
        """Put what is at an address of a repository of this folder into `files`, as if it had been fetched."""
        path = self._at(url)
        if path:
            files[url] = self._texts[path]

    def _at(self, url: str, source: str = "") -> str:
        """The file of this folder that is at an address; of any other address, the one in the repository of `source`
        whose path is most like it. "" where there is none."""
        match = _ADDRESS.fullmatch(url)
        if match is not None:
            owner, name = match["owner"] or match["owner_"], match["name"] or match["name_"]
            path = f"{owner}+{name}/{match['path']}"
            return path if path in self._texts else ""
        parts, repository = url.partition("://")[2].split("/")[1:], source.partition("/")[0]
        tails = ("/".join(parts[start:]) for start in range(len(parts)))
        found = (each for tail in tails for each in self._texts if f"/{each}".endswith(f"/{tail}"))
        return next((each for each in found if repository and each.startswith(f"{repository}/")), "")

    def _registered(self, registry: Any, source: str, files: dict[str, str]) -> Any:
        if isinstance(registry, dict):
            return {name: self._registered(each, source, files) for name, each in registry.items()}
        return self._type(registry, source, files) if isinstance(registry, str) else registry

    def _type(self, name: str, source: str, files: dict[str, str]) -> str:
        there = "://" in name or self._target(name, source) in self._texts
        return self._text(name, source, files) if name.endswith(TYPE_SUFFIXES) and there else name

    def _text(self, name: str, source: str, files: dict[str, str]) -> str:
        """Its name among the files. What is not in the folder (a script, a page of the network) is almost empty."""
        target = self._target(name, source)
        if target not in files:
            path = self._at(target, source) if "://" in target else target
            document = self._documents.get(path)
            files[target] = self._texts.get(path, MISSING)
            if document is not None and self._is_template(path):
                files[target] = json.dumps(self._named(document, path, files))
        return target

    def _used_by(self, path: str) -> Iterator[str]:
        names = [name for name in types_within(self._documents[path]) if name.endswith(TYPE_SUFFIXES)]
        yield from (self._target(name, path) for name in names)

    def _target(self, name: str, source: str) -> str:
        """The file that a name in another file means: relative to it, or else the one of that name beside it."""
        if "://" in name:
            return name
        folder = os.path.dirname(source)
        found = os.path.normpath(os.path.join(folder, name))
        beside = os.path.join(folder, os.path.basename(name))
        return beside if found not in self._texts and beside in self._texts else found


def _with_version(case: Case) -> Case:
    """A case whose name ends in `(with a version)`. What it uses as types gets one too."""
    files = dict(case.files)
    for name in {name for name in types_within(case.template) if name in files}:
        nested = _parsed(files[name], parse_template) or {}
        files[name] = json.dumps({VERSIONS[0]: VERSION_ADDED, **nested})
    template = {VERSIONS[0]: VERSION_ADDED, **(case.template if isinstance(case.template, dict) else {})}
    path, text = f"{case.path} (with a version)", json.dumps(template)
    return replace(case, path=path, text=text, template=template, files=files)


def _parsed(text: str, parse: Callable[[str], Document]) -> Document | None:
    try:
        return parse(text)
    except Rejected:
        return None


def _belongs(path: str, stem: str) -> bool:
    """Is this the environment of the template with this name?"""
    name = Path(path).stem
    found = _ENVIRONMENT.fullmatch(name)
    return name == stem if path.endswith(".env") else found is not None and found["stem"].rstrip("-_") == stem


def types_within(part: Any) -> Iterator[str]:
    """Types that a template uses, those within groups too; also values of other keys with that name."""
    pending = [part]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            yield from (name for key in ("type", "Type") if isinstance(name := each.get(key), str))
            pending += each.values()
        elif isinstance(each, list):
            pending += each


def _maps(registry: Any) -> set[str]:
    return set(registry) if isinstance(registry, dict) else set()
