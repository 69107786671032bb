"""A cloud in a directory: what it consists of, how it starts and stops."""

import contextlib
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.openstack.cloud import configuration, databases, install, mariadb, provisioning, rabbitmq, settings
from tests.openstack.cloud.errors import Failure
from tests.openstack.cloud.files import locked
from tests.openstack.cloud.processes import Processes
from tests.openstack.cloud.progress import say
from tests.openstack.cloud.services import services_of
from tests.openstack.cloud.services.service import Service
from tests.openstack.cloud.settings import Settings
from tests.openstack.cloud.site import Site

PARTS = ("etc", "log", "pid", "state", "lib", "home", "hypervisor")
NOT_IN_RUN = ("faults.json", "clouds.yaml", settings.FILE)


@dataclass(frozen=True, slots=True)
class Cloud:
    site: Site
    services: list[Service]
    processes: Processes

    def api_names(self) -> list[str]:
        return [name for each in self.services for name in each.apis]

    def up(self) -> None:
        """Install and start what is missing. Fails: Failure."""
        site, processes = self.site, self.processes
        install.install(site, self.services)
        for part in PARTS:
            site.run(part).mkdir(parents=True, exist_ok=True)
        settings.write(site.directory, site.settings)
        changed = configuration.write(site, self.services)
        rabbitmq.start(site)
        databases.start(site, self.services, processes)
        for each in self.services:
            each.before_start()
        # What runs has read its file as that was, such as a Neutron that has another plug-in now.
        processes.stop([name for each in changed for name in (*each.apis, *each.commands()) if processes.pid(name)])
        say("starting the services")
        for name in (*(name for each in self.services for name in each.first), *self.api_names()):
            processes.start(name)
        for name in ("keystone", "placement"):  # nova-compute ends without them
            processes.wait_for_api(name)
        for name in processes.commands:
            processes.start(name)
        for name in self.api_names():
            processes.wait_for_api(name)
        say("the APIs answer; waiting for the agents")
        provisioning.run(
            site, self.services, "resources", lambda: [processes.check(name) for name in processes.commands]
        )
        say(f"up: export OS_CLIENT_CONFIG_FILE={site.clouds_yaml} OS_CLOUD={configuration.USER}")

    def down(self, wipe: bool = False, purge: bool = False) -> None:
        """Stop everything. wipe — remove the data, too; purge — and the installation."""
        site, processes = self.site, self.processes
        processes.stop([name for name in processes.recorded() if name != mariadb.NAME])
        processes.stop([mariadb.NAME])
        if wipe or purge:
            rabbitmq.forget(site)
        rabbitmq.stop(site)
        if wipe or purge:
            shutil.rmtree(site.run(), ignore_errors=True)
            for name in NOT_IN_RUN:
                site.path(name).unlink(missing_ok=True)
        if purge:
            shutil.rmtree(site.directory, ignore_errors=True)
        say("down")

    def is_up(self) -> bool:
        """Whether every process of it runs."""
        return self.site.clouds_yaml.exists() and all(self.processes.pid(name) for name in self.processes.commands)

    def start(self, name: str) -> None:
        """One process; returns when it answers, if it is an API. Fails: Failure."""
        self._check_name(name)
        self.processes.start(name)
        if name in self.api_names():
            self.processes.wait_for_api(name)

    def stop(self, name: str, by: signal.Signals = signal.SIGTERM) -> None:
        """One process; returns when it has ended. Fails: Failure."""
        self._check_name(name)
        self.processes.stop([name], by)

    def _check_name(self, name: str) -> None:
        if name not in self.processes.commands:
            raise Failure(f"no process {name}; there are: {', '.join(self.processes.commands)}")


def open_cloud(directory: Path, chosen: Settings | None = None) -> Cloud:
    """The cloud of a directory. chosen — other settings than it was brought up with."""
    directory = directory.absolute()
    site = Site(directory, chosen or settings.read(directory))
    services = services_of(site)
    return Cloud(site, services, Processes(site, _commands(site, services)))


@contextlib.contextmanager
def working(directory: Path) -> Iterator[None]:
    """Nobody else starts or stops anything of this cloud meanwhile."""
    directory.mkdir(parents=True, exist_ok=True)
    with locked(directory / "lock"):
        yield


def _commands(site: Site, services: list[Service]) -> dict[str, list[str]]:
    """Of every process, in the order in which they are started."""
    python = site.program("python")
    found = {mariadb.NAME: mariadb.command(site)}
    for service in services:
        for api, module in service.apis.items():
            if module is not None:
                words = [python, "-m", "minios.wsgi", api, module, str(site.port(api))]
                found[api] = words + service.api_arguments()
    for service in services:
        found |= service.commands()
    return found
