"""The databases of a new cloud, and the copy of them that makes the next new cloud quick."""

import hashlib
import json
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.openstack.cloud import mariadb, provisioning
from tests.openstack.cloud.files import read_json, replace
from tests.openstack.cloud.install import BASE, digest
from tests.openstack.cloud.processes import Processes
from tests.openstack.cloud.progress import say
from tests.openstack.cloud.services.keystone import Keystone
from tests.openstack.cloud.services.service import Service
from tests.openstack.cloud.site import HERE, INSIDE, Site


def start(site: Site, services: Sequence[Service], processes: Processes) -> None:
    """Run MariaDB with the databases of all services in it, made where they are not there yet."""
    ready = site.run("databases-ready")
    there: list[str] | None = read_json(ready, None)
    wanted = [each.name for each in services if each.optional]
    if there is None:
        _create(site, services, processes)
        there = wanted
    else:
        mariadb.start(site, processes)
        new = [each for each in services if each.optional and each.name not in there]
        if new:
            say(f"creating the databases of {', '.join(each.name for each in new)}")
            _fill(site, new)
            _fill_catalog(site, services, processes)
    replace(ready, [*there, *(name for name in wanted if name not in there)])


def _create(site: Site, services: Sequence[Service], processes: Processes) -> None:
    for each in services:
        if isinstance(each, Keystone):
            each.write_keys()
    data, copy = mariadb.data(site), _copy(site, services)
    shutil.rmtree(data, ignore_errors=True)
    if copy.exists():
        say(f"copying the databases from {copy.name}")
        shutil.copytree(copy, data)
        mariadb.start(site, processes)
        return
    say("creating the databases (the first time only)")
    mariadb.initialize(site)
    mariadb.start(site, processes)
    mariadb.create_account(site)
    _fill(site, services)
    _fill_catalog(site, services, processes)
    say(f"keeping a copy of the databases in {copy.name}")
    processes.stop(["keystone"])
    processes.stop([mariadb.NAME])
    for old in site.directory.glob("seed-*"):
        shutil.rmtree(old)
    unfinished = copy.with_suffix(".tmp")
    shutil.copytree(data, unfinished)
    unfinished.rename(copy)
    mariadb.start(site, processes)


def _fill(site: Site, services: Sequence[Service]) -> None:
    if names := [name for each in services for name in each.databases]:
        mariadb.create_databases(site, names)
    with ThreadPoolExecutor() as pool:
        list(pool.map(_prepare, [each for each in services if each.databases]))
        # Plug-ins have their tables in the database of another service, whose program makes them, too.
        list(pool.map(_prepare, [each for each in services if not each.databases]))


def _prepare(service: Service) -> None:
    service.prepare()
    if service.databases:
        say(f"{service.name} has its databases")


def _fill_catalog(site: Site, services: Sequence[Service], processes: Processes) -> None:
    processes.start("keystone")
    processes.wait_for_api("keystone")
    provisioning.run(site, services, "catalog")


def _copy(site: Site, services: Sequence[Service]) -> Path:
    """Its name says what it was made with, and by which code."""
    made_with = [site.settings.port_base, site.settings.name, [each.name for each in services]]
    key = hashlib.sha256(json.dumps(made_with).encode())
    pins = [each.requirements for each in services if each.requirements is not None]
    code = [HERE / "mariadb.py", HERE / "databases.py", INSIDE / "minios" / "provision.py"]
    for path in (BASE, *pins, *code, *sorted((HERE / "services").glob("*.py"))):
        key.update(digest(path).encode())
    return site.path(f"seed-{key.hexdigest()[:12]}")
