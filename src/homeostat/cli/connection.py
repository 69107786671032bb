"""The client of the service that a command means."""

from argparse import Namespace

from homeostat.cli.client import Client
from homeostat.cli.errors import Unreachable
from homeostat.cli.output import console
from homeostat.cli.service import start_for_client
from homeostat.cli.service_flags import default_settings
from homeostat.cli.settings import ClientSettings
from homeostat.cli.state_directory import State


def connect(arguments: Namespace, *, start: bool = False) -> Client:
    """Return a client of the named service, or of the one that has the state directory.

    Args:
        start: Start a service if none runs.
    """
    settings = ClientSettings.of(arguments)
    if settings.url:
        return Client(settings.url, settings)
    there = State(settings.state).running()
    if there is None and not start:
        remedy = "start one with `homeostat serve --detach`, or name one with --url"
        raise Unreachable(f"no service has the state directory {settings.state}: {remedy}")
    if there is None:
        there = start_for_client(default_settings(settings.state))
        if not arguments.json:
            console().print(f"no service was running: started one at {there.url}", style="dim")
    return Client(there.url, settings)
