"""What a cloud is made with. It is remembered in its directory."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from tests.openstack.cloud.files import replace

FILE = "settings.json"


@dataclass(frozen=True, slots=True)
class Settings:
    """soft_delete — seconds in which a deleted server can be restored; name — of vhost and MariaDB's user."""

    port_base: int = 19000
    computes: int = 1
    soft_delete: int = 0
    name: str = "minios"
    debug: bool = False
    services: tuple[str, ...] = ()

    @property
    def compute_hosts(self) -> list[str]:
        return [f"compute{number + 1}" for number in range(self.computes)]


def read(directory: Path) -> Settings:
    """Those that the cloud was brought up with last, or the defaults."""
    try:
        known = json.loads((directory / FILE).read_text())
    except FileNotFoundError:
        return Settings()
    return Settings(**{**known, "services": tuple(known["services"])})


def write(directory: Path, settings: Settings) -> None:
    replace(directory / FILE, dataclasses.asdict(settings))
