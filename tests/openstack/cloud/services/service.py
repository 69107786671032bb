"""What a service of the cloud is: its servers, databases, accounts and configuration."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tests.openstack.cloud.files import Sections
from tests.openstack.cloud.site import HERE, PASSWORD, Site

REGION = "RegionOne"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Of the catalog. api — the server behind it; user — the service's account."""

    api: str
    user: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class Shared:
    """What the files of all services have in common."""

    site: Site

    def database(self, name: str) -> dict[str, object]:
        user, port = self.site.settings.name, self.site.port("mariadb")
        connection = f"mysql+pymysql://{user}:{PASSWORD}@127.0.0.1:{port}/{name}"
        return {"connection": connection, "max_pool_size": 5, "max_overflow": 10}

    def account(self, user: str) -> dict[str, object]:
        return {
            "auth_type": "password",
            "auth_url": self.site.url("keystone", "/v3"),
            "username": user,
            "password": PASSWORD,
            "project_name": "service",
            "user_domain_id": "default",
            "project_domain_id": "default",
            "region_name": REGION,
        }

    @property
    def notifications(self) -> dict[str, object]:
        """For the services that tell what happens to their things."""
        return {"driver": "messagingv2", "topics": "notifications"}

    def sections(self, service: str) -> Sections:
        """Those that every service but Keystone has."""
        site = self.site
        return {
            "DEFAULT": {
                "transport_url": site.transport_url,
                "debug": site.settings.debug,
                "my_ip": "127.0.0.1",
                "host": "mini",
                "state_path": site.run("state", service),
            },
            "database": self.database(service),
            "keystone_authtoken": {
                **self.account(service),
                "www_authenticate_uri": site.url("keystone", "/v3"),
                "service_token_roles": "service",
                "service_token_roles_required": True,
            },
            "service_user": {"send_service_user_token": True, **self.account(service)},
            "oslo_concurrency": {"lock_path": site.run("state", service, "lock")},
            "oslo_messaging_notifications": {"driver": "noop"},
        }


class Service(ABC):
    """One of the cloud's. A subclass says what it has; the rest follows from its name.

    apis — servers that `minios.wsgi` runs: their WSGI modules; None: the service has a program for it;
    databases — to be made; endpoints — by type of service; roles — that users need besides `member`;
    plugins — of ours: group and object; programs — and the packages of Debian that have them;
    first — of its processes, those that APIs need in order to start.
    """

    name: ClassVar[str]
    apis: ClassVar[Mapping[str, str | None]] = {}
    databases: ClassVar[tuple[str, ...]] = ()
    endpoints: ClassVar[Mapping[str, Endpoint]] = {}
    roles: ClassVar[tuple[str, ...]] = ()
    plugins: ClassVar[Mapping[str, str]] = {}
    programs: ClassVar[Mapping[str, str]] = {}
    first: ClassVar[tuple[str, ...]] = ()
    optional: ClassVar[bool] = True

    def __init__(self, site: Site) -> None:
        self.site = site
        self.shared = Shared(site)

    @property
    def requirements(self) -> Path | None:
        """What it needs besides `base.txt`."""
        return HERE / "requirements" / f"{self.name}.txt" if self.optional else None

    @property
    def file(self) -> Path:
        return self.site.run("etc", self.name, f"{self.name}.conf")

    @property
    def file_arguments(self) -> list[str]:
        return ["--config-file", str(self.file)]

    def state(self, *parts: str) -> Path:
        return self.site.run("state", self.name, *parts)

    def packaged(self, *parts: str) -> Path:
        """A file that came with the service."""
        return self.site.venv.joinpath("etc", *parts)

    def manage(self, program: str, *arguments: str) -> None:
        self.site.call_inside(f"{self.name}-manage", self.site.program(program), *arguments)

    @abstractmethod
    def configuration(self) -> Sections:
        """What is in its file."""

    def write_files(self) -> None:  # noqa: B027 - most need none
        """Write what it reads besides its file."""

    def prepare(self) -> None:  # noqa: B027
        """Fill its new databases."""

    def before_start(self) -> None:  # noqa: B027
        """Do what each start needs, with the databases running."""

    def api_arguments(self) -> list[str]:
        """What its APIs find in sys.argv."""
        return []

    def commands(self) -> dict[str, list[str]]:
        """Its processes other than the APIs."""
        return {}
