"""The images and flavors of the local cloud: names that templates often use; images.json and flavors.json add more.

A guest is a process of this machine whatever its image, so an image is only a name here.
"""

import json
import uuid
from pathlib import Path

from homeostat.model.errors import Terminal

IMAGES = (
    "local",
    "cirros",
    "cirros-0.5.2-x86_64-disk",
    "cirros-0.6.2-x86_64-disk",
    "cirros-0.6.3-x86_64-disk",
    "ubuntu",
    "ubuntu-20.04",
    "ubuntu-22.04",
    "ubuntu-24.04",
    "debian",
    "debian-11",
    "debian-12",
    "debian-13",
    "centos",
    "centos-stream-9",
    "fedora",
    "Fedora-Cloud-Base",
    "rocky-9",
    "almalinux-9",
    "alpine",
)
FLAVORS = (
    "m1.nano",
    "m1.micro",
    "m1.tiny",
    "m1.small",
    "m1.medium",
    "m1.large",
    "m1.xlarge",
    "cirros256",
    "ds512M",
    "ds1G",
    "ds2G",
    "ds4G",
    "1",
    "2",
    "3",
    "4",
    "5",
)
_NAMESPACE = uuid.UUID("0c9e8c6c-52a5-4f4e-8f4d-6c6f63616c32")


class Catalogue:
    """The values of `image` and `flavor`: names, or the ids of these names."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def resolve(self, entity: str, name_or_id: str) -> str | None:
        """Return the id of a known name or id; None if unknown."""
        ids = {name: catalogue_id(entity, name) for name in self.names(entity)}
        return ids.get(name_or_id) or (name_or_id if name_or_id in ids.values() else None)

    def check(self, entity: str, name_or_id: str) -> None:
        """Check that an image or a flavor exists; `entity` is `image` or `flavor`.

        Raises:
            Terminal: The image or flavor is unknown; the message lists the known ones.
        """
        if self.resolve(entity, name_or_id) is None:
            added = self._root / f"{entity}s.json"
            known = ", ".join(self.names(entity))
            raise Terminal(
                f"There is no {entity} {name_or_id!r}; known are: {known}. To add some, list them in {added}"
            )

    def names(self, entity: str) -> list[str]:
        built_in = IMAGES if entity == "image" else FLAVORS
        path = self._root / f"{entity}s.json"
        try:
            added = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            added = []
        except ValueError as error:
            raise Terminal(f"{path} is not a JSON list of names: {error}") from error
        return [*built_in, *added]


def catalogue_id(entity: str, name: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, f"{entity}:{name}"))
