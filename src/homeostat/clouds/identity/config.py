"""The operator's settings for Keystone: an ini file of oslo.config with the options of Heat.

A `heat.conf` works; sections and options that do not concern Keystone are ignored.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keystoneauth1 import loading
from keystoneauth1.exceptions import MissingRequiredOptions, NoMatchingPlugin
from oslo_config import cfg

SERVICE, TRUSTEE = "keystone_authtoken", "trustee"
"""Sections with a login: of the service, and of the trustee of users, by default the service."""
REQUEST_S = 30
TRUSTS = "trusts"
_USERS = (
    cfg.StrOpt("stack_user_domain_id", default=""),
    cfg.StrOpt("stack_user_domain_name", default=""),
    cfg.StrOpt("stack_domain_admin", default=""),
    cfg.StrOpt("stack_domain_admin_password", default="", secret=True),
    cfg.StrOpt("heat_stack_user_role", default="heat_stack_user"),
    cfg.ListOpt("trusts_delegated_roles", default=[]),
    cfg.StrOpt("deferred_auth_method", default=TRUSTS),
    cfg.StrOpt("region_name_for_services", default=""),
)


@dataclass(frozen=True, slots=True)
class IdentityConfig:
    """The settings.

    Attributes:
        path: Path of the file.
        service: Login of the service, as a plug-in of keystoneauth.
        trustee: Login of the trustee of users.
        trusting: Id of a trust -> login of the trustee with this trust.
        connection: Session of keystoneauth.
        auth_url: URL of Keystone for the service.
        public_url: URL of Keystone for clients and servers, with version.
        roles: Roles in trusts of users; empty for all roles of the user.
        domain_id: Id of the domain for users of stacks; either this or `domain_name` is enough.
        domain_name: Name of this domain.
        domain_admin: Administrator of this domain; "" if the service creates no users.
        domain_password: Password of the administrator.
        user_role: Role of users of stacks in their project.
        region: Region in the catalogue; "" for any.
    """

    path: Path
    service: Any = field(repr=False)
    trustee: Any = field(repr=False)
    trusting: Callable[[str], Any] = field(repr=False)
    connection: Any = field(repr=False)
    auth_url: str = ""
    public_url: str = ""
    roles: Sequence[str] = ()
    domain_id: str = ""
    domain_name: str = ""
    domain_admin: str = ""
    domain_password: str = field(default="", repr=False)
    user_role: str = "heat_stack_user"
    region: str = ""

    @property
    def login_url(self) -> str:
        """URL of Keystone for the service, with its version."""
        return _versioned(self.auth_url)

    @property
    def has_users(self) -> bool:
        """Whether the service can make users for servers."""
        return bool(self.domain_admin and (self.domain_id or self.domain_name))


def read_config(path: Path) -> IdentityConfig:
    """Read the file.

    Raises:
        ValueError: The file is wrong or incomplete; the message says what to change.
    """
    conf = cfg.ConfigOpts()
    for section in (SERVICE, TRUSTEE):
        loading.register_session_conf_options(conf, section)
        loading.register_auth_conf_options(conf, section)
    conf.register_opts([cfg.StrOpt("www_authenticate_uri", default=""), cfg.StrOpt("auth_uri", default="")], SERVICE)
    conf.register_opts(_USERS)
    try:
        conf([], project="homeostat", default_config_files=[str(path)], default_config_dirs=[])
        _check(conf)
        service = _login(conf, SERVICE)
        return IdentityConfig(
            path,
            service,
            trustee=_login(conf, TRUSTEE) or service,
            trusting=lambda trust_id: _login(conf, TRUSTEE, trust_id) or _login(conf, SERVICE, trust_id),
            connection=_connection(conf),
            auth_url=str(service.auth_url).rstrip("/"),
            public_url=_public_url(conf, str(service.auth_url)),
            roles=tuple(conf.trusts_delegated_roles),
            domain_id=conf.stack_user_domain_id,
            domain_name=conf.stack_user_domain_name,
            domain_admin=conf.stack_domain_admin,
            domain_password=conf.stack_domain_admin_password,
            user_role=conf.heat_stack_user_role,
            region=conf.region_name_for_services,
        )
    except (cfg.Error, MissingRequiredOptions, NoMatchingPlugin) as error:
        raise ValueError(f"{path}: {error}") from error


def _check(conf: Any) -> None:
    """Check rules that oslo.config cannot express.

    Raises:
        cfg.Error: A setting is missing or wrong; the message says what to write.
    """
    if not (conf[SERVICE].auth_type or conf[SERVICE].auth_section):
        example = "auth_type = password, auth_url, username, password, project_name, …_domain_name"
        raise cfg.Error(f"section [{SERVICE}] has no login of the service: write {example}")
    if conf.deferred_auth_method != TRUSTS:
        raise cfg.Error(f"deferred_auth_method: it is {TRUSTS} here, not {conf.deferred_auth_method}")


SCOPES = ("project_id", "project_name", "project_domain_id", "project_domain_name")
"""Options of a login that a trust replaces."""


def _login(conf: Any, section: str, trust_id: str = "") -> Any:
    with_trust: dict[str, Any] = {"trust_id": trust_id, **dict.fromkeys(SCOPES)} if trust_id else {}
    return loading.load_auth_from_conf_options(conf, section, **with_trust)


def _connection(conf: Any) -> Any:
    if conf[SERVICE].timeout is None:
        conf.set_default("timeout", REQUEST_S, SERVICE)
    return loading.load_session_from_conf_options(conf, SERVICE)


def _public_url(conf: Any, auth_url: str) -> str:
    """Return the URL of Keystone with its version, which clients without discovery need."""
    url = (conf[SERVICE].www_authenticate_uri or conf[SERVICE].auth_uri or auth_url).rstrip("/")
    return _versioned(url)


def _versioned(url: str) -> str:
    return url if url.endswith("/v3") else f"{url}/v3"
