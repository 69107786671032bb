"""Registration of the service in a Keystone: its users, roles, domain and catalogue entries.

Idempotent: a second run creates only missing objects.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from keystoneauth1 import adapter, exceptions, loading, session
from keystoneauth1.identity import v3

from homeostat.clouds.identity.keystone import AUTH_URL, Wire, named

INTERFACES = ("public", "internal", "admin")
OWNER_ROLE, USER_ROLE, SERVICE_ROLE, ADMIN_ROLE = "heat_stack_owner", "heat_stack_user", "service", "admin"
SERVICES = {
    "orchestration": ("heat", "Stacks, by the Orchestration API", "/v1/%(project_id)s"),
    "cloudformation": ("heat-cfn", "Stacks, by the CloudFormation API", "/v1"),
    "clustering": ("senlin", "Clusters, by the Clustering API", "/clustering"),
}
"""Type -> name, description, and path of its endpoints."""


class Impossible(Exception):
    """Registration is impossible with the present settings or objects; the message says how to proceed."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Objects to register.

    Attributes:
        public_url: URL at which clients reach the API.
        auth_url: URL of Keystone, with version.
        password: Password of the service user.
        domain_password: Password of the domain's administrator.
        region: Region of the endpoints.
        service_user: User of the service.
        service_project: Project of the service.
        domain: Domain for the users of stacks.
        domain_admin: Administrator of this domain.
        is_new: Whether the passwords are new; the users must then not exist.
    """

    public_url: str
    auth_url: str
    password: str = field(repr=False)
    domain_password: str = field(repr=False)
    region: str
    service_user: str = "homeostat"
    service_project: str = "service"
    domain: str = "heat"
    domain_admin: str = "homeostat_domain_admin"
    is_new: bool = True


def administrator(environ: Mapping[str, str]) -> adapter.Adapter:
    """Return a client with the login in the variables `OS_*`.

    Raises:
        Impossible: A variable is missing.
    """
    try:
        plug_in: Any = loading.get_plugin_loader(environ.get("OS_AUTH_TYPE") or "password")
        login = plug_in.load_from_options_getter(lambda option: _variable(environ, option))
    except (exceptions.MissingRequiredOptions, exceptions.NoMatchingPlugin) as error:
        raise Impossible(f"set the variables of an administrator, as `openstack` takes them: {error}") from error
    connection = session.Session(login, verify=environ.get("OS_CACERT") or True)
    return adapter.Adapter(connection, service_type="identity", interface=AUTH_URL, min_version="3")


def _variable(environ: Mapping[str, str], option: Any) -> str | None:
    names = [option.dest, *(alias.dest for alias in option.deprecated)]
    values = [environ.get(f"OS_{name.upper().replace('-', '_')}") for name in names]
    return next((value for value in values if value), None)


def only_region(admin: adapter.Adapter) -> str:
    """Return the only region of the catalogue.

    Raises:
        Impossible: The catalogue has none or several; the message names them.
    """
    regions = [str(region["id"]) for region in admin.get("/regions").json()["regions"]]
    if len(regions) == 1:
        return regions[0]
    raise Impossible(f"name the region of the endpoints with --region-name (there are: {', '.join(regions) or 'none'})")


def register(admin: adapter.Adapter, wanted: Wanted) -> Iterator[str]:
    """Register the service, and yield a line for each created object.

    Raises:
        Impossible: An existing object does not fit; and any error of keystoneauth.
    """
    yield from _Registrar(admin, wanted).register()


class _Registrar:
    def __init__(self, admin: adapter.Adapter, wanted: Wanted) -> None:
        self._admin = admin
        self._wanted = wanted
        self._made: list[str] = []

    def register(self) -> Iterator[str]:
        for step in (self._roles, self._service, self._domain, self._catalogue):
            step()
            yield from self._made
            self._made.clear()

    def _roles(self) -> None:
        for name in (OWNER_ROLE, USER_ROLE, SERVICE_ROLE):
            self._ensure("roles", name)

    def _service(self) -> None:
        """Create the service user, which validates tokens and is the trustee of other users."""
        wanted = self._wanted
        project = self._ensure("projects", wanted.service_project, domain_id="default")
        user = self._user(wanted.service_user, wanted.password, "default", {"project_id": project})
        self._grant(f"projects/{project}/users/{user}", SERVICE_ROLE)

    def _domain(self) -> None:
        wanted = self._wanted
        domain = self._ensure("domains", wanted.domain, {"description": "Users that servers of stacks are"})
        user = self._user(wanted.domain_admin, wanted.domain_password, domain, {"domain_id": domain})
        self._grant(f"domains/{domain}/users/{user}", ADMIN_ROLE)

    def _catalogue(self) -> None:
        for type, (name, description, path) in SERVICES.items():
            services = self._get("services", type=type)["services"]
            more = {"type": type, "description": description}
            service = services[0]["id"] if services else self._make("services", name, more)
            for interface in INTERFACES:
                self._endpoint(service, interface, f"{self._wanted.public_url}{path}")

    def _endpoint(self, service: str, interface: str, url: str) -> None:
        region = self._wanted.region
        endpoints = self._get("endpoints", service_id=service, interface=interface, region_id=region)["endpoints"]
        if not endpoints:
            body = {"service_id": service, "region_id": region, "interface": interface, "url": url}
            self._admin.post("/endpoints", json={"endpoint": body})
            self._made.append(f"endpoint {interface} {url}")
        elif endpoints[0]["url"] != url:
            self._admin.patch(f"/endpoints/{endpoints[0]['id']}", json={"endpoint": {"url": url}})
            self._made.append(f"endpoint {interface} {url} (was {endpoints[0]['url']})")

    def _ensure(self, kind: str, name: str, more: Mapping[str, Any] | None = None, **where: str) -> str:
        """Return the id of the object with this name; create a missing object."""
        entry = named(self._get(kind, name=name, **where), kind, name)
        return str(entry["id"]) if entry is not None else self._make(kind, name, {**(more or {}), **where})

    def _user(self, name: str, password: str, domain_id: str, scope: Mapping[str, str]) -> str:
        """Return the id of a user who can log in with this password; create or change the user if necessary."""
        user = named(self._get("users", name=name, domain_id=domain_id), "users", name)
        if user is None:
            return self._make("users", name, {"password": password, "domain_id": domain_id})
        if self._wanted.is_new:
            raise Impossible(
                f"there is a user {name}, and no file with the password: give the file that belongs to it with "
                "--keystone-config, or choose other names with --service-user and --domain-admin"
            )
        if not self._lets_in(user["id"], password):
            self._admin.patch(f"/users/{user['id']}", json={"user": {"password": password}})
            self._made.append(f"password of user {name}")
        return str(user["id"])

    def _lets_in(self, user_id: str, password: str) -> bool:
        login = v3.Password(self._wanted.auth_url, user_id=user_id, password=password, unscoped=True)
        try:
            session.Session(login, verify=self._admin.session.verify).get_token()
        except exceptions.Unauthorized:
            return False
        return True

    def _grant(self, place: str, role: str) -> None:
        """Grant a role; idempotent."""
        role_id = self._ensure("roles", role)
        self._admin.put(f"/{place}/roles/{role_id}")

    def _get(self, kind: str, **where: str) -> Wire:
        return dict(self._admin.get(f"/{kind}", params=where).json())

    def _make(self, kind: str, name: str, more: Mapping[str, Any]) -> str:
        one = kind.removesuffix("s")
        entry = self._admin.post(f"/{kind}", json={one: {"name": name, **more}}).json()[one]
        self._made.append(f"{one} {name}")
        return str(entry["id"])


def file_of(wanted: Wanted) -> str:
    """Return the text of a file for `--keystone-config`."""
    return f"""# How Homeostat reaches Keystone. It holds passwords: keep it to the service's own user.
[DEFAULT]
stack_user_domain_name = {wanted.domain}
stack_domain_admin = {wanted.domain_admin}
stack_domain_admin_password = {wanted.domain_password}
region_name_for_services = {wanted.region}

[keystone_authtoken]
www_authenticate_uri = {wanted.auth_url}
auth_type = password
auth_url = {wanted.auth_url}
username = {wanted.service_user}
password = {wanted.password}
user_domain_id = default
project_name = {wanted.service_project}
project_domain_id = default
service_token_roles_required = true
interface = public
"""
