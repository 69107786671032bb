"""The reference of requests, from the OpenAPI document of the service: an index, a page for each subject, shapes."""

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from docs.type_pages import row
from fastapi import FastAPI

from homeostat.api.access.auth import NoAccess
from homeostat.api.app import create_app
from homeostat.api.policy_text import list_rules
from homeostat.clock import Entropy, SystemClock
from homeostat.services.quotas import Quotas
from homeostat.services.stacks import StackService
from homeostat.store.database import Database

FOLDER = "requests"
SHAPES = "shapes"
Schema = Mapping[str, Any]
HEAD = """\
# Requests

Every request that the service answers, by subject: its parameters, its body, what comes back. It is the service's own
OpenAPI document (`/openapi.json`) as pages. [API](api.md) has what holds for all of them,
[Clustering API](clustering.md) how that one is used, [Requests and rules](access.md) what each role gets.
""".splitlines()
SHAPES_HEAD = """\
# Shapes

What bodies consist of, by name. A field in **bold** is always there. [All requests](../requests.md).
""".splitlines()


@dataclass(frozen=True)
class Request:
    """One or more methods of a path that do the same."""

    methods: tuple[str, ...]
    path: str
    operation: Schema

    @property
    def tag(self) -> str:
        return str(self.operation["tags"][0])

    @property
    def summary(self) -> str:
        return str(self.operation["summary"])


def application() -> FastAPI:
    """The service's application, on a database without anything in it."""
    with contextlib.closing(Database("sqlite://", lambda: 0.0)) as nothing:
        return create_app(nothing, StackService(nothing, Entropy(), Quotas()), SystemClock(), access=NoAccess())


@cache
def document() -> Mapping[str, Any]:
    return application().openapi()


def pages() -> Mapping[str, Callable[[], str]]:
    """Path below the reference -> what writes the page."""
    subjects = {f"{FOLDER}/{file_name(tag)}.md": partial(subject_page, tag) for tag in subjects_of(document())}
    return {f"{FOLDER}.md": index_page, f"{FOLDER}/{SHAPES}.md": shapes_page, **subjects}


def file_name(tag: str) -> str:
    return tag.replace(": ", "-").replace(" ", "-")


def subjects_of(found: Mapping[str, Any]) -> Mapping[str, list[Request]]:
    """Tag -> its requests, as they are in the document."""
    together: dict[tuple[str, str], list[tuple[str, Schema]]] = {}
    for path, operations in found["paths"].items():
        for method, operation in operations.items():
            together.setdefault((path, _sameness(operation)), []).append((method.upper(), operation))
    tags: dict[str, list[Request]] = {}
    for (path, _), same in together.items():
        request = Request(tuple(method for method, _ in same), path, same[0][1])
        tags.setdefault(request.tag, []).append(request)
    return tags


def _sameness(operation: Schema) -> str:
    return json.dumps({key: each for key, each in operation.items() if key != "operationId"}, sort_keys=True)


# -- the index ---------------------------------------------------------------------------------------------------------


def index_page() -> str:
    lines = [*HEAD]
    for tag, requests in subjects_of(document()).items():
        lines += ["", f"## [{title(tag)}]({FOLDER}/{file_name(tag)}.md)", "", "| request | |", "|---|---|"]
        lines += [row(f"`{_line(each)}`", each.summary) for each in requests]
    return "\n".join([*lines, ""])


def title(tag: str) -> str:
    return f"{tag[:1].upper()}{tag[1:]}"


def _line(request: Request) -> str:
    return f"{', '.join(request.methods)} {request.path}"


# -- a subject ---------------------------------------------------------------------------------------------------------


def subject_page(tag: str) -> str:
    lines = [f"# Requests: {tag}", "", f"[All requests](../{FOLDER}.md) · [Shapes]({SHAPES}.md)"]
    for request in subjects_of(document())[tag]:
        lines += ["", *_section(request)]
    return "\n".join([*lines, ""])


def _section(request: Request) -> Iterator[str]:
    operation = request.operation
    yield from (f"## {request.summary}", "", f"`{_line(request)}`")
    if "description" in operation:
        yield from ("", operation["description"])
    rules = sorted({rule for method in request.methods for rule in _rules().get((method, request.path), ())})
    if rules:
        yield from ("", f"By the [rule](../policy.md) {', '.join(f'`{rule}`' for rule in rules)}.")
    if parameters := operation.get("parameters"):
        yield from ("", "| parameter | in | type | meaning |", "|---|---|---|---|")
        yield from (_parameter(each) for each in parameters)
    if body := operation.get("requestBody"):
        yield from ("", *_body(body))
    yield from ("", "| answer | body | meaning |", "|---|---|---|")
    yield from (_answer(code, each) for code, each in _answers(operation) if code < "400")
    refusals = sorted(code for code, _ in _answers(operation) if code >= "400")
    if refusals:
        yield from ("", f"[Errors](../api.md#errors): {', '.join(refusals)}.")


@cache
def _rules() -> Mapping[tuple[str, str], list[str]]:
    """Method and path of a request -> the names of the rules that guard it."""
    found: dict[tuple[str, str], list[str]] = {}
    for rule in list_rules():
        for each in getattr(rule, "operations", ()):
            found.setdefault((each["method"], each["path"]), []).append(rule.name)
    return found


def _parameter(each: Schema) -> str:
    required = " **Required.**" if each.get("required") and each["in"] != "path" else ""
    return row(f"`{each['name']}`", each["in"], kind(each["schema"]), f"{_meaning(each['schema'])}{required}".strip())


def _body(body: Schema) -> Iterator[str]:
    for media_type, content in body["content"].items():
        schema = content.get("schema", {})
        yield f"Body, as `{media_type}`: {kind(schema)}. {_described(schema)[0]}".rstrip()
        if fields := list(_fields(schema)):
            yield from ("", "| field | type | meaning |", "|---|---|---|", *fields)


def _answers(operation: Schema) -> list[tuple[str, Schema]]:
    return list(operation["responses"].items())


def _answer(code: str, answer: Schema) -> str:
    bodies = []
    for media_type, content in answer.get("content", {}).items():
        shape = kind(content.get("schema", {}))
        bodies.append(shape if media_type == "application/json" else f"{shape} (`{media_type}`)")
    words = answer["description"]
    return row(code, " or ".join(bodies), "Done." if words == "Successful Response" else words)


# -- shapes ------------------------------------------------------------------------------------------------------------


def shapes_page() -> str:
    lines = [*SHAPES_HEAD]
    for name, schema in sorted(document()["components"]["schemas"].items()):
        lines += ["", f"## {name}", ""]
        lines += [text, ""] if (text := _described(schema)[0]) else []
        fields = list(_fields(schema))
        lines += ["| field | type | meaning |", "|---|---|---|", *fields] if fields else [f"{kind(schema)}."]
        if fields and schema.get("additionalProperties"):
            lines += ["", "It may have further fields."]
    return "\n".join([*lines, ""])


def _fields(schema: Schema, prefix: str = "") -> Iterator[str]:
    """Rows of the fields of an object, and of the objects in it that have no name of their own."""
    words = _described(schema)[1]
    for name, each in schema.get("properties", {}).items():
        shown = f"`{prefix}{name}`"
        mark = f"**{shown}**" if name in schema.get("required", ()) else shown
        yield row(mark, kind(each), " ".join(filter(None, (words.get(name, ""), _meaning(each)))))
        for inner, mark in _inner(each):
            yield from _fields(inner, f"{prefix}{name}{mark}.")


def _described(schema: Schema) -> tuple[str, Mapping[str, str]]:
    """The description without its list of fields, and what that says of each."""
    text, _, listed = schema.get("description", "").partition("\n\nAttributes:\n")
    return text, dict(re.findall(r"^    (\w+): (.+(?:\n {8}.+)*)", listed, re.MULTILINE))


def _inner(schema: Schema) -> Iterator[tuple[Schema, str]]:
    for each in (schema, *schema.get("anyOf", ())):
        if "properties" in each:
            yield each, ""
        elif "properties" in each.get("items", {}):
            yield each["items"], "[]"


def kind(schema: Schema) -> str:
    """What a value is, in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}]({SHAPES}.md#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(kind(each) for each in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"`{each}`" for each in schema["enum"])
    match schema.get("type"):
        case "array":
            return f"list of {kind(schema['items'])}" if schema.get("items") else "list"
        case "object" if isinstance(schema.get("additionalProperties"), Mapping):
            return f"object of {kind(schema['additionalProperties'])}"
        case None:
            return "anything"
        case name:
            return str(name)


def _meaning(schema: Schema) -> str:
    notes = [schema.get("description", "")]
    if schema.get("default") not in (None, [], ""):
        notes.append(f"Default: `{json.dumps(schema['default'])}`.")
    for each in (schema, *schema.get("anyOf", ())):
        low, high = each.get("minimum"), each.get("maximum")
        if low is not None and high not in (None, 2**31 - 1):
            notes.append(f"{low:.0f} to {high:.0f}.")
        elif low:
            notes.append(f"At least {low:.0f}.")
        if "pattern" in each:
            notes.append(f"Matches `{each['pattern']}`.")
    return " ".join(note for note in notes if note).replace("\n", " ")
