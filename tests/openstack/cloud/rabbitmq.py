"""RabbitMQ: one for all clouds of the machine, with a virtual host for each."""

import contextlib
from pathlib import Path

from tests.openstack.cloud import ports
from tests.openstack.cloud.errors import Failure
from tests.openstack.cloud.progress import say
from tests.openstack.cloud.site import Site
from tests.openstack.cloud.waiting import listening, wait_for

START_S = 120.0


def start(site: Site) -> None:
    """Start it where it does not run, and make the cloud's virtual host."""
    if not listening(ports.RABBITMQ):
        say("starting RabbitMQ")
        site.call("rabbitmq-server", "-detached")
        _started_here(site).touch()
    wait_for("RabbitMQ", lambda: listening(ports.RABBITMQ), START_S)
    wait_for("RabbitMQ", lambda: _answers(site), START_S)
    name = site.settings.name
    if name not in site.call("rabbitmqctl", "-q", "list_vhosts").split():
        site.call("rabbitmqctl", "add_vhost", name)
        site.call("rabbitmqctl", "set_permissions", "-p", name, "guest", ".*", ".*", ".*")


def stop(site: Site) -> None:
    """Stop it where this cloud has started it."""
    if _started_here(site).exists():
        site.call("rabbitmqctl", "stop")
        _started_here(site).unlink()


def forget(site: Site) -> None:
    """Remove the cloud's virtual host and all messages in it."""
    if site.run("state").exists() and listening(ports.RABBITMQ):
        with contextlib.suppress(Failure):
            site.call("rabbitmqctl", "delete_vhost", site.settings.name)


def _answers(site: Site) -> bool:
    try:
        site.call("rabbitmqctl", "await_startup")
    except Failure:
        return False
    return True


def _started_here(site: Site) -> Path:
    return site.run("rabbitmq-started-here")
