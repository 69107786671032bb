"""Settings of the service and of a client, read from flags (`service_flags`) and `HOMEOSTAT_*` variables."""

import ipaddress
import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from homeostat.cli.errors import Usage
from homeostat.model.health_policy import DEFAULT_VANTAGE
from homeostat.model.rates import read_rate

PORT = 8004
CLOUDS = ("local", "openstack", "simulated")
INTERFACES = ("public", "internal", "admin")
ACCESS_MODES = ("none", "basic", "keystone")
LOG_LEVELS = ("debug", "info", "warning", "error")
SQL_BOARD = "sql"
NO_KEYS = "none"
"""Value of --encryption-keys that leaves secrets unencrypted."""
OS_TIMEOUT_MAX_S = 100.0
"""Maximum silence of a pass, until another worker takes its shard over (`Limits.hang_s`)."""
REDIS_SCHEMES = ("redis://", "rediss://", "unix://")
_FLAGS = {
    "state": "state_dir",
    "os_notification_topics": "os_notification_topic",
    "hidden_tags": "hidden_tag",
    "forget_workers_s": "forget_workers_after",
    "regions": "region",
    "environment_files": "environment_file",
    "trusted_proxies": "trusted_proxy",
}
"""Setting -> its flag, if that has another name."""


def default_state() -> str:
    """Return `$XDG_STATE_HOME/homeostat`, or `~/.local/state/homeostat`."""
    return str(Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "homeostat")


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """Settings of a service."""

    state: Path
    """Directory of all data."""
    database: str = ""
    """SQLAlchemy URL; empty for SQLite in `state`."""
    encryption_keys: str = ""
    """Key file that encrypts secrets; `none` for no encryption; empty for the file in `state`, with SQLite only."""
    board: str = SQL_BOARD
    """`sql`, or URL of the Redis database where workers find their jobs."""
    cloud: str = "local"
    os_cloud: str = ""
    """Entry of `clouds.yaml` whose login is used for all projects; empty with access mode `keystone`."""
    os_region: str = ""
    """Region of OpenStack's catalogue; empty if the catalogue has a single region."""
    os_interface: str = "public"
    """Interface of the endpoints in OpenStack's catalogue."""
    os_timeout: float = 60.0
    """Seconds that a request to OpenStack may take."""
    os_connections: int = 16
    """Concurrent requests to OpenStack per process."""
    os_notifications: tuple[str, ...] = ()
    """Transport URLs of the message buses of OpenStack's services, with passwords."""
    os_notification_topics: tuple[str, ...] = ()
    """`EXCHANGE/TOPIC` of OpenStack's notifications; empty for the default topics."""
    os_notification_pool: str = "homeostat"
    """Queue that the processes of this service share."""
    stack_notifications: str = ""
    """Transport URL of the message bus for notifications about stacks, with its password; empty for none."""
    stack_notification_topic: str = "heat/notifications"
    """`EXCHANGE/TOPIC` of notifications about stacks."""
    os_requests_per_second: str = ""
    """`RATE[:BURST]` for each of OpenStack's services, `SERVICE=RATE[:BURST],…`, or both; empty for no limit."""
    host: str = "127.0.0.1"
    port: int = PORT
    """0 for any free port."""
    access: str = "none"
    all_local_users: bool = False
    """Access mode `none` admits all users of this machine, not only the user who runs the service."""
    users_run_code_as_me: bool = False
    """Other users may use the local cloud, where servers are processes of the user who runs the service."""
    htpasswd: Path | None = None
    """Password file for access mode `basic`."""
    keystone_config: Path | None = None
    """Keystone settings for access mode `keystone`."""
    policy_file: Path | None = None
    """Authorization rules that override the defaults."""
    old_policy_defaults: bool = False
    """Deprecated defaults of the rules apply, too."""
    workers: int = 1
    """Worker processes."""
    apis: int = 1
    """API processes."""
    metrics: bool = False
    """The API serves metrics."""
    drain_file: Path | None = None
    """While this file exists, `/healthcheck` answers 503."""
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = None
    """Port of the first worker's metrics; each further worker has the next. 0 for any free port, None for none."""
    traces: bool = False
    max_body: int = 1_048_576
    """Size limit of a request's body, in bytes."""
    rate_limit: str = ""
    """`REQUESTS_PER_SECOND[:BURST]` per caller and project; empty for no limit."""
    no_adopt: bool = False
    """Stacks cannot be adopted."""
    no_abandon: bool = False
    """Stacks cannot be exported or abandoned."""
    stacks_max: int = 512
    """Stacks per project, without nested stacks."""
    resources_max: int = 1_000_000
    """Resources per stack, including its nested stacks."""
    expanded_max: int = 50_000
    """Resources in the distinct nested templates of a stack."""
    hidden_tags: tuple[str, ...] = ()
    """Stacks with one of these tags are listed only on request."""
    depth_max: int = 5
    """Levels of nested stacks."""
    vantage: str = DEFAULT_VANTAGE
    """Vantage point of the workers, which probe URLs of nodes."""
    heal_share: float = 0.4
    """Share of a stack's things healed at a time."""
    forget_workers_s: float = 600.0
    """Time until a dead worker is no longer listed."""
    previewed_max: int = 10_000
    """Maximum resources in a preview."""
    heavy_requests: int = 4
    """Requests that check templates at the same time, per API process."""
    snapshots_max: int = 32
    """Snapshots per stack."""
    health_interval_min: int = 60
    """Shortest interval of health checks, in seconds."""
    regions: tuple[str, ...] = ()
    """`NAME=URL` of services in which stacks may be created."""
    region_logins: Path | None = None
    """File of the credentials for these services."""
    fetch_from: tuple[str, ...] = ()
    """Non-public addresses from which templates may be fetched."""
    environment_files: tuple[Path, ...] = ()
    plugins: tuple[Path, ...] = ()
    """Directories with modules of resource types."""
    heat_imports: bool = False
    """These modules may import the names of Heat."""
    public_url: str = ""
    """Address at which servers reach the API; empty for the listening address."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies trusted for the client's address."""
    log_level: str = "info"
    log_json: bool = False

    @classmethod
    def of(cls, arguments: Namespace) -> "ServiceSettings":
        """Return the checked settings in parsed flags."""
        flags = {field.name: getattr(arguments, _FLAGS.get(field.name, field.name)) for field in fields(cls)}
        values: dict[str, Any] = {name: tuple(flag) if isinstance(flag, list) else flag for name, flag in flags.items()}
        for name in ("state", "policy_file"):
            values[name] = values[name] and values[name].expanduser().absolute()
        for name in ("environment_files", "plugins"):
            values[name] = tuple(Path(path).expanduser().absolute() for path in values[name])
        values["encryption_keys"] = _absolute(arguments.encryption_keys)
        values["public_url"] = arguments.public_url.rstrip("/").removesuffix("/v1")
        settings = cls(**values)
        settings.check()
        return settings

    def check(self) -> None:
        """Raise Usage naming an invalid setting. Values of environment variables are not checked by argparse."""
        for flag, value, known in (
            ("--cloud", self.cloud, CLOUDS),
            ("--os-interface", self.os_interface, INTERFACES),
            ("--access", self.access, ACCESS_MODES),
            ("--log-level", self.log_level, LOG_LEVELS),
        ):
            if value not in known:
                raise Usage(f"{flag} {value}: choose one of {', '.join(known)}")
        self._check_access()
        self._check_paths()
        self._check_local_cloud()
        self._check_openstack()
        if self.cloud == "simulated" and self.workers > 1:
            raise Usage("--cloud simulated lives in the memory of one worker: leave --workers at 1")
        self._check_limits()
        self._check_urls()
        self._check_packages()

    def _check_access(self) -> None:
        if self.access == "basic" and self.htpasswd is None:
            raise Usage("--access basic needs --htpasswd FILE (make one with: htpasswd -B -c FILE USER)")
        if self.access == "basic" and self.htpasswd is not None and not self.htpasswd.is_file():
            raise Usage(f"--htpasswd {self.htpasswd}: there is no such file")
        if self.access == "keystone":
            self._check_keystone()
        if self.access == "none" and not is_loopback(self.host):
            raise Usage(f"--access none serves this machine only, not {self.host}: use --access basic --htpasswd FILE")

    def _check_paths(self) -> None:
        if self.region_logins is not None and not self.region_logins.is_file():
            raise Usage(f"--region-logins {self.region_logins}: there is no such file")
        strange = [folder for folder in self.plugins if not folder.is_dir()]
        if strange:
            raise Usage(f"--plugins {strange[0]}: there is no such directory")

    def _check_limits(self) -> None:
        for flag, count in (
            ("--workers", self.workers),
            ("--apis", self.apis),
            ("--heavy-requests", self.heavy_requests),
            ("--os-connections", self.os_connections),
        ):
            if count < 1:
                raise Usage(f"{flag} {count}: at least one is needed")
        if not 1.0 <= self.os_timeout <= OS_TIMEOUT_MAX_S:
            raise Usage(f"--os-timeout {self.os_timeout:g}: give between 1 and {OS_TIMEOUT_MAX_S:g} seconds")
        if self.max_body < 1:
            raise Usage(f"--max-body {self.max_body}: give a number of bytes")
        try:
            read_rate(self.rate_limit)
        except ValueError as error:
            raise Usage(f"--rate-limit {self.rate_limit}: {error}") from error

    def _check_urls(self) -> None:
        if self.board != SQL_BOARD and not self.board.startswith(REDIS_SCHEMES):
            raise Usage(f"--board: give {SQL_BOARD}, or a URL that begins with {', '.join(REDIS_SCHEMES)}")
        if self.public_url and not self.public_url.startswith(("http://", "https://")):
            raise Usage(f"--public-url {self.public_url}: give it as http://HOST:PORT")
        for proxy in self.trusted_proxies:
            try:
                ipaddress.ip_network(proxy, strict=False)
            except ValueError as error:
                raise Usage(f"--trusted-proxy {proxy}: give an address, or a network such as 10.0.0.0/24") from error

    def _check_packages(self) -> None:
        if self.redis_url and find_spec("redis") is None:
            raise Usage("--board on Redis needs a package that is not installed: pip install 'homeostat[redis]'")
        shows_metrics = self.metrics or self.metrics_port is not None
        if shows_metrics and find_spec("prometheus_client") is None:
            raise Usage("metrics need a package that is not installed: pip install 'homeostat[metrics]'")
        if self.traces and not _can_trace():
            raise Usage("--traces needs packages that are not installed: pip install 'homeostat[otel]'")

    def _check_local_cloud(self) -> None:
        """Refuse a local cloud for other users: its servers run commands as the user who runs the service."""
        others = self.access != "none" or self.all_local_users
        if self.cloud == "local" and others and not self.users_run_code_as_me:
            users = "--all-local-users" if self.access == "none" else f"--access {self.access}"
            raise Usage(
                f"{users} with --cloud local: every user could run any program as you, with all your files; where "
                "that is meant, say --users-run-code-as-me, else use --cloud simulated"
            )

    def _check_openstack(self) -> None:
        if self.cloud != "openstack":
            return
        if find_spec("openstack") is None:
            raise Usage("--cloud openstack needs packages that are not installed: pip install 'homeostat[openstack]'")
        if self.access != "keystone" and not self.os_cloud:
            raise Usage(
                "--cloud openstack needs --access keystone, where each project acts for itself, or --os-cloud NAME: "
                "the entry of clouds.yaml whose login serves all projects"
            )
        if self.access == "keystone" and self.os_cloud:
            raise Usage("--os-cloud: with --access keystone, the owners of stacks log in, leave it out")

    def _check_keystone(self) -> None:
        if find_spec("keystonemiddleware") is None:
            raise Usage("--access keystone needs packages that are not installed: pip install 'homeostat[keystone]'")
        if self.keystone_config is None:
            raise Usage("--access keystone needs --keystone-config FILE (make one with: homeostat register)")
        if not self.keystone_config.is_file():
            raise Usage(f"--keystone-config {self.keystone_config}: there is no such file")

    @property
    def redis_url(self) -> str:
        """URL of the job board; empty for the board in the database."""
        return "" if self.board == SQL_BOARD else self.board

    def metrics_port_of(self, worker: int) -> int | None:
        """Return the metrics port of a worker, counted from 0."""
        return self.metrics_port + worker if self.metrics_port else self.metrics_port

    def environment(self) -> dict[str, str]:
        """Return the settings as variables for the service's processes, so that no password shows in `ps`."""
        return {
            "HOMEOSTAT_STATE_DIR": str(self.state),
            "HOMEOSTAT_DATABASE": self.database,
            "HOMEOSTAT_ENCRYPTION_KEYS": self.encryption_keys,
            "HOMEOSTAT_BOARD": self.board,
            "HOMEOSTAT_CLOUD": self.cloud,
            **self._cloud_environment(),
            "HOMEOSTAT_HOST": self.host,
            "HOMEOSTAT_PORT": str(self.port),
            "HOMEOSTAT_ACCESS": self.access,
            "HOMEOSTAT_ALL_LOCAL_USERS": "1" if self.all_local_users else "",
            "HOMEOSTAT_USERS_RUN_CODE_AS_ME": "1" if self.users_run_code_as_me else "",
            "HOMEOSTAT_HTPASSWD": str(self.htpasswd or ""),
            "HOMEOSTAT_KEYSTONE_CONFIG": str(self.keystone_config or ""),
            "HOMEOSTAT_POLICY_FILE": str(self.policy_file or ""),
            "HOMEOSTAT_OLD_POLICY_DEFAULTS": "1" if self.old_policy_defaults else "",
            "HOMEOSTAT_WORKERS": str(self.workers),
            "HOMEOSTAT_APIS": str(self.apis),
            "HOMEOSTAT_METRICS": "1" if self.metrics else "",
            "HOMEOSTAT_DRAIN_FILE": "" if self.drain_file is None else str(self.drain_file),
            "HOMEOSTAT_METRICS_HOST": self.metrics_host,
            "HOMEOSTAT_METRICS_PORT": "" if self.metrics_port is None else str(self.metrics_port),
            "HOMEOSTAT_TRACES": "1" if self.traces else "",
            "HOMEOSTAT_MAX_BODY": str(self.max_body),
            "HOMEOSTAT_RATE_LIMIT": self.rate_limit,
            "HOMEOSTAT_NO_ADOPT": "1" if self.no_adopt else "",
            "HOMEOSTAT_NO_ABANDON": "1" if self.no_abandon else "",
            "HOMEOSTAT_STACKS_MAX": str(self.stacks_max),
            "HOMEOSTAT_RESOURCES_MAX": str(self.resources_max),
            "HOMEOSTAT_EXPANDED_MAX": str(self.expanded_max),
            "HOMEOSTAT_HIDDEN_TAG": " ".join(self.hidden_tags),
            "HOMEOSTAT_DEPTH_MAX": str(self.depth_max),
            "HOMEOSTAT_PREVIEWED_MAX": str(self.previewed_max),
            "HOMEOSTAT_HEAVY_REQUESTS": str(self.heavy_requests),
            "HOMEOSTAT_VANTAGE": self.vantage,
            "HOMEOSTAT_HEAL_SHARE": str(self.heal_share),
            "HOMEOSTAT_FORGET_WORKERS_AFTER": f"{self.forget_workers_s:.0f}s",
            "HOMEOSTAT_SNAPSHOTS_MAX": str(self.snapshots_max),
            "HOMEOSTAT_HEALTH_INTERVAL_MIN": str(self.health_interval_min),
            "HOMEOSTAT_REGION": " ".join(self.regions),
            "HOMEOSTAT_REGION_LOGINS": str(self.region_logins or ""),
            "HOMEOSTAT_FETCH_FROM": " ".join(self.fetch_from),
            "HOMEOSTAT_ENVIRONMENT_FILE": " ".join(map(str, self.environment_files)),
            "HOMEOSTAT_PLUGINS": os.pathsep.join(map(str, self.plugins)),
            "HOMEOSTAT_HEAT_IMPORTS": "1" if self.heat_imports else "",
            "HOMEOSTAT_PUBLIC_URL": self.public_url,
            "HOMEOSTAT_TRUSTED_PROXY": " ".join(self.trusted_proxies),
            "HOMEOSTAT_LOG_LEVEL": self.log_level,
            "HOMEOSTAT_LOG_JSON": "1" if self.log_json else "",
        }

    def _cloud_environment(self) -> dict[str, str]:
        return {
            "HOMEOSTAT_OS_CLOUD": self.os_cloud,
            "HOMEOSTAT_OS_REGION": self.os_region,
            "HOMEOSTAT_OS_INTERFACE": self.os_interface,
            "HOMEOSTAT_OS_TIMEOUT": str(self.os_timeout),
            "HOMEOSTAT_OS_CONNECTIONS": str(self.os_connections),
            "HOMEOSTAT_OS_NOTIFICATIONS": " ".join(self.os_notifications),
            "HOMEOSTAT_OS_NOTIFICATION_TOPIC": " ".join(self.os_notification_topics),
            "HOMEOSTAT_OS_NOTIFICATION_POOL": self.os_notification_pool,
            "HOMEOSTAT_STACK_NOTIFICATIONS": self.stack_notifications,
            "HOMEOSTAT_STACK_NOTIFICATION_TOPIC": self.stack_notification_topic,
            "HOMEOSTAT_OS_REQUESTS_PER_SECOND": self.os_requests_per_second,
        }


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Settings of a client.

    Attributes:
        url: Without path; empty for the service of `state`.
        user: For HTTP basic; empty for no credentials.
    """

    state: Path
    url: str = ""
    project: str = "default"
    user: str = ""
    password: str = ""

    @classmethod
    def of(cls, arguments: Namespace, environ: Mapping[str, str] = os.environ) -> "ClientSettings":
        user = environ.get("HOMEOSTAT_USER", "")
        return cls(
            state=arguments.state_dir.expanduser().absolute(),
            url=arguments.url.rstrip("/").removesuffix("/v1"),
            project=arguments.project or user or "default",
            user=user,
            password=environ.get("HOMEOSTAT_PASSWORD", ""),
        )


def _absolute(keys: str) -> str:
    """Return the absolute path, for processes that may run in another directory."""
    return keys if keys in ("", NO_KEYS) else str(Path(keys).expanduser().absolute())


def with_own_region(regions: Sequence[str], url: str) -> tuple[str, ...]:
    """Add this service's own API to the regions, as `default`, unless that is configured."""
    named = any(region.startswith("default=") for region in regions)
    return tuple(regions) if named else (*regions, f"default={url}")


def is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _can_trace() -> bool:
    from homeostat.observability import tracing

    return tracing.available()
