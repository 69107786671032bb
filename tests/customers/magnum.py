"""A real Magnum, its API and its conductor, in `.magnum`: it makes clusters of containers by stacks."""

import contextlib
import ctypes
import http.server
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.openstack.cloud import mariadb
from tests.openstack.cloud.cloud import open_cloud
from tests.openstack.cloud.files import Sections, write_ini
from tests.openstack.cloud.services.service import REGION, Shared
from tests.openstack.cloud.site import PASSWORD, Site
from tests.openstack.running import OpenStack, eventually

NAME = "magnum"
KIND = "container-infra"
DOMAIN_ADMIN = "magnum_domain_admin"
STARTS_S = 180.0
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Magnum:
    """place — of the environment. work — a directory for its files."""

    place: Path
    work: Path
    site: Site
    port: int

    def program(self, name: str) -> str:
        return str(self.place / "bin" / name)

    @property
    def file(self) -> Path:
        return self.work / "magnum.conf"

    @property
    def env(self) -> Mapping[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OS_", "PYTHON"))}
        return {**inherited, "PYTHONWARNINGS": "ignore", "HOME": str(self.work)}

    def configure(self, discovery_url: str) -> None:
        """Write its file. discovery_url — of the service that tells the members of an etcd of each other."""
        shared = Shared(self.site)
        account = shared.account(NAME)
        sections: Sections = {
            **shared.sections(NAME),
            "api": {
                "host": "127.0.0.1",
                "port": self.port,
                "workers": 1,
                "api_paste_config": self.place / "etc/magnum/api-paste.ini",
            },
            "conductor": {"workers": 1},
            "certificates": {"cert_manager_type": "x509keypair", "storage_path": self._folder("certificates")},
            "cluster": {
                "temp_cache_dir": self._folder("cache"),
                "etcd_discovery_service_endpoint_format": f"{discovery_url}/new?size=%(size)d",
            },
            "keystone_auth": account,
            "trust": {
                "trustee_domain_name": NAME,
                "trustee_domain_admin_name": DOMAIN_ADMIN,
                "trustee_domain_admin_password": PASSWORD,
                "trustee_keystone_interface": "public",
            },
            "drivers": {"verify_ca": False},
            "oslo_concurrency": {"lock_path": self._folder("lock")},
        }
        sections["DEFAULT"] |= {"state_path": self._folder("state")}
        for client in ("magnum", "heat", "neutron", "glance", "nova", "cinder", "octavia"):
            sections[f"{client}_client"] = {"region_name": REGION}
        write_ini(self.file, sections)

    def fill_database(self) -> None:
        mariadb.run_sql(self.site, f"DROP DATABASE IF EXISTS {NAME}")
        mariadb.create_databases(self.site, [NAME])
        with (self.work / "database.log").open("wb") as log:
            command = self._command("magnum-db-manage", "upgrade")
            subprocess.run(command, env=self.env, stdout=log, stderr=log, check=True)

    @contextlib.contextmanager
    def processes(self) -> Iterator[None]:
        """Its API and its conductor run meanwhile, and the API answers."""
        with self._running("magnum-api") as api, self._running("magnum-conductor"):
            eventually(lambda: self._answers(api), "Magnum's API to answer", STARTS_S)
            yield

    @contextlib.contextmanager
    def _running(self, program: str) -> Iterator["subprocess.Popen[bytes]"]:
        with (self.work / f"{program}.log").open("wb") as log:
            started = subprocess.Popen(
                self._command(program),
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
                preexec_fn=_end_with_the_tests,
            )
            try:
                yield started
            finally:
                # With the workers that it has started.
                os.killpg(started.pid, signal.SIGKILL)
                started.wait()

    def _answers(self, api: "subprocess.Popen[bytes]") -> bool:
        assert api.poll() is None, (self.work / "magnum-api.log").read_text(errors="replace")
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/").status_code < 500
        except httpx.TransportError:
            return False

    def _command(self, program: str, *arguments: str) -> Sequence[str]:
        return [self.program(program), "--config-file", str(self.file), *arguments]

    def _folder(self, name: str) -> Path:
        folder = self.work / name
        folder.mkdir(exist_ok=True)
        return folder


def _end_with_the_tests() -> None:
    """Not even killed tests leave a process behind: a conductor would go on, and ask a discovery that has gone."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@contextlib.contextmanager
def running(cloud: OpenStack, place: Path, work: Path) -> Iterator[Magnum]:
    """A Magnum of the test's own, in the catalogue of that OpenStack."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    magnum = Magnum(place, work, open_cloud(cloud.directory).site, port)
    _unregister(cloud)
    try:
        _register(cloud, f"http://127.0.0.1:{port}/v1")
        with discovery() as discovery_url:
            magnum.configure(discovery_url)
            magnum.fill_database()
            with magnum.processes():
                yield magnum
    finally:
        _unregister(cloud)


def _register(cloud: OpenStack, url: str) -> None:
    """Its account and its endpoint, and the domain of the users by which its clusters ask the cloud."""
    with contextlib.closing(cloud.admin()) as admin:
        identity: Any = admin.identity
        project = identity.find_project("service", ignore_missing=False)
        user = identity.create_user(name=NAME, password=PASSWORD, domain_id="default")
        identity.assign_project_role_to_user(project, user, identity.find_role("admin"))
        service = identity.create_service(name=NAME, type=KIND)
        for interface in ("public", "internal"):
            identity.create_endpoint(service_id=service.id, interface=interface, region_id=REGION, url=url)
        domain = identity.create_domain(name=NAME)
        owner = identity.create_user(name=DOMAIN_ADMIN, password=PASSWORD, domain_id=domain.id)
        identity.assign_domain_role_to_user(domain, owner, identity.find_role("admin"))


def _unregister(cloud: OpenStack) -> None:
    with contextlib.closing(cloud.admin()) as admin:
        identity: Any = admin.identity
        for service in identity.services(type=KIND):
            identity.delete_service(service)
        for domain in identity.domains(name=NAME):
            identity.update_domain(domain, is_enabled=False)
            identity.delete_domain(domain)
        user = identity.find_user(NAME)
        if user is not None:
            identity.delete_user(user)


class _Discovery(http.server.BaseHTTPRequestHandler):
    """Stands for etcd's public discovery service: each asks for an address, and for how many members are expected."""

    def do_GET(self) -> None:
        host = self.headers["Host"]
        text = f"http://{host}/cluster" if self.path.startswith("/new") else '{"node": {"value": "1"}}'
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: who asks is no concern of the tests."""


@contextlib.contextmanager
def discovery() -> Iterator[str]:
    """Give its address, below which everything is there for one master."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Discovery) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
