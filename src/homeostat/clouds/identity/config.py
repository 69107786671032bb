"""What the operator says of Keystone: an ini file of oslo.config, in the words of the Orchestration service.

A `heat.conf` will do; sections and options that are not of Keystone are left alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keystoneauth1 import loading
from keystoneauth1.exceptions import MissingRequiredOptions, NoMatchingPlugin
from oslo_config import cfg

SERVICE, TRUSTEE = "keystone_authtoken", "trustee"
"""Sections with a login: of the service, and of whom users trust, which is the service where there is no section."""
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
    """path — of the file; service, trustee — logins, as plug-ins of keystoneauth; trusting — the login of the trustee
    with a trust; connection — options of a session; roles — that users delegate, empty for all they have; domain_id,
    domain_name — where the users of stacks live, at most one of them is needed; domain_admin, domain_password — who
    makes them there, "" where nobody does; user_role — what they may do in their project; region — of the catalogue, ""
    for any; public_url — of Keystone, as clients and servers reach it."""

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
    def has_users(self) -> bool:
        """Can it make users for servers?"""
        return bool(self.domain_admin and (self.domain_id or self.domain_name))


def read_config(path: Path) -> IdentityConfig:
    """Fails: ValueError saying what is wrong with the file, or lacks in it."""
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
    """Fails: cfg.Error naming the section and what to write there."""
    if not (conf[SERVICE].auth_type or conf[SERVICE].auth_section):
        example = "auth_type = password, auth_url, username, password, project_name, …_domain_name"
        raise cfg.Error(f"section [{SERVICE}] has no login of the service: write {example}")
    if conf.deferred_auth_method != TRUSTS:
        raise cfg.Error(f"deferred_auth_method: it is {TRUSTS} here, not {conf.deferred_auth_method}")


SCOPES = ("project_id", "project_name", "project_domain_id", "project_domain_name")
"""Options of a login that a trust stands in for."""


def _login(conf: Any, section: str, trust_id: str = "") -> Any:
    with_trust: dict[str, Any] = {"trust_id": trust_id, **dict.fromkeys(SCOPES)} if trust_id else {}
    return loading.load_auth_from_conf_options(conf, section, **with_trust)


def _connection(conf: Any) -> Any:
    if conf[SERVICE].timeout is None:
        conf.set_default("timeout", REQUEST_S, SERVICE)
    return loading.load_session_from_conf_options(conf, SERVICE)


def _public_url(conf: Any, auth_url: str) -> str:
    """With version, as those need it who only know how to ask for tokens."""
    url = (conf[SERVICE].www_authenticate_uri or conf[SERVICE].auth_uri or auth_url).rstrip("/")
    return url if url.endswith("/v3") else f"{url}/v3"
