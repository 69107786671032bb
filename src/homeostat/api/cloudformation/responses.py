"""Responses of the CloudFormation API: the same structure as XML or as JSON."""

import json
import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from starlette.responses import Response

from homeostat.api.cloudformation.errors import Refused
from homeostat.api.http.answer_budget import ANSWER_BYTES_MAX, too_large
from homeostat.api.http.responses import Json
from homeostat.json_pieces import is_light

TEXTS = ("Metadata", "TemplateBody")
"""Elements whose content is JSON text."""
XML_BYTES_MAX = ANSWER_BYTES_MAX // 2
"""Memory of a value to be written as XML."""
REMEDY = "ask for one stack or one resource alone, or for pages by NextToken"
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NO_NAME = re.compile(r"[^\w.-]")
_NO_FIRST = re.compile(r"[^A-Za-z_]")


class Xml(Response):
    """XML response in ASCII without an encoding declaration, which parsers of agents on servers reject."""

    media_type = "text/xml"

    def render(self, content: ElementTree.Element) -> bytes:
        return ElementTree.tostring(content)


ERRORS = (400, 403, 404, 429, 500, 503)


def documented(description: str) -> dict[int | str, dict[str, Any]]:
    """Return a route's `responses` for this success, and for errors."""
    content: dict[str, Any] = {Xml.media_type: {}, Json.media_type: {}}
    failed = {"description": "An `ErrorResponse` with the code of AWS.", "content": content}
    done = {"description": f"{description} As JSON with `ContentType=JSON`.", "content": content}
    return {200: done, **dict.fromkeys(ERRORS, failed)}


def answer(action: str, result: Any, *, as_json: bool) -> Response:
    """Return the response of an action.

    Args:
        result: Maps and lists of plain values, or a text.

    Raises:
        Rejected: RequestLimitExceeded.
    """
    # An element takes ten times as much memory as its text.
    if not as_json and not is_light(result, XML_BYTES_MAX):
        raise too_large(REMEDY)
    return _response({f"{action}Response": {f"{action}Result": result}}, as_json=as_json)


def error(problem: Refused, *, as_json: bool = False) -> Response:
    """Return the response for an error."""
    error = {"Type": problem.type, "Code": problem.code, "Message": problem.message}
    return _response({"ErrorResponse": {"Error": error}}, problem.status, as_json=as_json)


def _response(tree: Mapping[str, Any], status: int = 200, *, as_json: bool) -> Response:
    if as_json:
        return Json(tree, status, remedy=REMEDY)
    ((name, content),) = tree.items()
    element = ElementTree.Element(name)
    _fill(element, content)
    return Xml(element, status)


def _fill(element: ElementTree.Element, content: Any) -> None:
    """Fill an element. Lists become `<member>`. None is omitted: clients take an empty element's name for its value."""
    if isinstance(content, Mapping):
        for name, value in content.items():
            if value is not None:
                _fill(ElementTree.SubElement(element, _name(str(name))), _content(str(name), value))
    elif isinstance(content, list | tuple):
        for value in content:
            _fill(ElementTree.SubElement(element, "member"), value)
    elif content is not None:
        element.text = _text(content)


def _content(name: str, value: Any) -> Any:
    return json.dumps(value) if name in TEXTS and not isinstance(value, str) else value


def _text(value: Any) -> str:
    """Format a value. Clients know booleans in lower case only; characters that XML cannot contain are replaced."""
    plain = str(value).lower() if isinstance(value, bool) else str(value)
    return _NO_XML.sub("\ufffd", plain)


def _name(key: str) -> str:
    """Turn a key of a user's map into the name of an element."""
    name = _NO_NAME.sub("_", key)
    return f"_{name}" if not name or _NO_FIRST.match(name) else name


def without_colons(value: Any) -> Any:
    """Replace `:` by `.` in the keys of maps: XML parsers would take the part before it for a namespace."""
    if isinstance(value, Mapping):
        return {str(key).replace(":", "."): without_colons(item) for key, item in value.items()}
    return [without_colons(item) for item in value] if isinstance(value, list) else value
