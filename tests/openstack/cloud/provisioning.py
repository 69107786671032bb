"""Accounts, catalog, flavors, image and networks: `minios.provision` makes them, in the services' environment."""

import json
import subprocess
import time
from collections.abc import Callable, Sequence

from tests.openstack.cloud.errors import Failure
from tests.openstack.cloud.services.service import Service
from tests.openstack.cloud.site import PASSWORD, Site

LOOK_S = 0.2
LOG = "provision"


def run(site: Site, services: Sequence[Service], phase: str, check: Callable[[], object] = lambda: None) -> None:
    """Fails: Failure, also what `check` fails with while it runs."""
    endpoints = {kind: each for service in services for kind, each in service.endpoints.items()}
    settings = {
        "password": PASSWORD,
        "computes": site.settings.compute_hosts,
        "endpoints": {kind: [site.url(each.api, each.path), each.user] for kind, each in endpoints.items()},
        "roles": sorted({role for service in services for role in service.roles}),
        "optional": [service.name for service in services if service.optional],
    }
    with site.log(LOG).open("wb") as log:
        running = subprocess.Popen(
            [site.program("python"), "-m", "minios.provision", phase, json.dumps(settings)],
            stdout=log,
            stderr=log,
            env=site.environment(),
        )
    try:
        while running.poll() is None:
            check()
            time.sleep(LOOK_S)
    finally:
        running.kill()
        running.wait()
    if running.returncode:
        raise Failure(f"the cloud could not be set up, {site.see(LOG)}")
