"""Placeholders for facts about a node in the URLs and parameters of a health policy. Pure.

URLs have the short form, `{nodename}`; parameters of actions may also have the long form, `{{ node.name }}`.
"""

import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, urlsplit

from homeostat.clustering.decisions.specs import Path
from homeostat.model.health_policy import DetectionType
from homeostat.model.node_health import NodeNames

_FIELDS = {
    "nodename": "name",
    "nodeid": "id",
    "physicalid": "physical_id",
    "nodeip": "address",
    "clustername": "cluster_name",
    "clusterid": "cluster_id",
}
"""Placeholder -> field of `NodeNames`."""
_LONG = {
    "node.name": "nodename",
    "node.id": "nodeid",
    "node.physicalid": "physicalid",
    "node.physical_id": "physicalid",
    "node.ip": "nodeip",
    "cluster.name": "clustername",
    "cluster.id": "clusterid",
}
KNOWN = tuple(_FIELDS)
_SHORT_FORM = re.compile(r"\{(\w+)\}")
_LONG_FORM = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")


SAMPLE = NodeNames("name", "id", "physical", "192.0.2.1", "cluster", "id")
"""Values of the right form, for checks."""


def unknown_in(text: str) -> str:
    """Return the first unknown placeholder of a text, or ""."""
    for name in _LONG_FORM.findall(text):
        if name not in _LONG:
            return f"{{{{ {name} }}}}"
    strange = (name for name in _SHORT_FORM.findall(_LONG_FORM.sub("", text)) if name not in _FIELDS)
    return next((f"{{{name}}}" for name in strange), "")


def needed_in(text: str) -> tuple[str, ...]:
    """Return the placeholders of a text, in their short form."""
    long = [_LONG[name] for name in _LONG_FORM.findall(text) if name in _LONG]
    short = [name for name in _SHORT_FORM.findall(_LONG_FORM.sub("", text)) if name in _FIELDS]
    return tuple(dict.fromkeys(long + short))


def missing_in(text: str, names: NodeNames) -> str:
    """Return the first placeholder of a text without a known value, or ""."""
    return next((f"{{{placeholder}}}" for placeholder in needed_in(text) if not _value(names, placeholder)), "")


def expanded_url(url: str, names: NodeNames) -> str:
    """Return a URL with its placeholders replaced; values are encoded, and an IPv6 address gets brackets."""
    return _expanded(url, lambda placeholder: _in_url(placeholder, _value(names, placeholder)))


def expanded(value: Any, names: NodeNames) -> Any:
    """Return plain data with the placeholders in its texts replaced; keys stay unchanged."""
    if isinstance(value, str):
        return _expanded(value, lambda placeholder: _value(names, placeholder))
    if isinstance(value, Mapping):
        return {key: expanded(item, names) for key, item in value.items()}
    return [expanded(item, names) for item in value] if isinstance(value, list) else value


def _expanded(text: str, value: Any) -> str:
    def long(match: re.Match[str]) -> str:
        return str(value(_LONG[match[1]])) if match[1] in _LONG else match[0]

    def short(match: re.Match[str]) -> str:
        return str(value(match[1])) if match[1] in _FIELDS else match[0]

    # A value must not be searched for placeholders again.
    parts = re.split(r"(\{\{\s*[\w.]+\s*\}\})", text)
    return "".join(
        _LONG_FORM.sub(long, part) if place % 2 else _SHORT_FORM.sub(short, part) for place, part in enumerate(parts)
    )


def _value(names: NodeNames, placeholder: str) -> str:
    return str(getattr(names, _FIELDS[placeholder]))


def _in_url(placeholder: str, value: str) -> str:
    if placeholder == "nodeip":
        try:
            return f"[{value}]" if ip_address(value).version == 6 else value
        except ValueError:
            pass
    return quote(value, safe="")


def fixed_hosts(properties: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
    """Yield URLs that workers call from the service's own place, and their paths in the properties.

    URLs with a placeholder in the host are left out, as are URLs called from vantage points, which have separate rules.

    Args:
        properties: Properties of a checked spec.
    """
    detection = properties["detection"]
    if not detection["vantage_points"]:
        yield from _fixed(detection["canary_url"], ("detection", "canary_url"))
        for place, mode in enumerate(detection["detection_modes"]):
            if mode["type"] == DetectionType.URL:
                path = ("detection", "detection_modes", place, "options", "poll_url")
                yield from _fixed(mode["options"]["poll_url"], path)


def _fixed(url: str, path: Path) -> Iterator[tuple[str, Path]]:
    if url and not needed_in(urlsplit(url).netloc):
        yield expanded_url(url, SAMPLE), path
