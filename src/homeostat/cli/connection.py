"""The connection of a command to its service."""

from argparse import Namespace

from homeostat.cli.client import Client
from homeostat.cli.errors import Unreachable
from homeostat.cli.output import console
from homeostat.cli.service import start_for_client
from homeostat.cli.service_flags import default_settings
from homeostat.cli.settings import ClientSettings
from homeostat.cli.state_directory import State


def connect(arguments: Namespace, *, start: bool = False) -> Client:
    """Return a client of the service at `--url`, or of the service with the state directory.

    Args:
        start: Start a service if none runs.
    """
    settings = ClientSettings.of(arguments)
    if settings.url:
        return Client(settings.url, settings)
    service = State(settings.state).running()
    if service is None and not start:
        remedy = "start one with `homeostat serve --detach`, or name one with --url"
        raise Unreachable(f"no service has the state directory {settings.state}: {remedy}")
    if service is None:
        service = start_for_client(default_settings(settings.state))
        if not arguments.json:
            console().print(f"no service was running: started one at {service.url}", style="dim")
    return Client(service.url, settings)
