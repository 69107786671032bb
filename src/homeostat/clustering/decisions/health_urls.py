"""URLs of a health policy with a fixed host. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from homeostat.clustering.decisions.placeholders import SAMPLE, expanded_url, needed_in
from homeostat.clustering.decisions.specs import Path
from homeostat.model.health_policy import DetectionType


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
