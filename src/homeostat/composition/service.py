"""The commands `serve`, `api` and `worker`, with their flags."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from importlib import import_module

from homeostat.cli.errors import OK, Problem
from homeostat.cli.flags import Commands, add_option
from homeostat.cli.logs import start_logging
from homeostat.cli.running import run
from homeostat.cli.service import start_detached, supervise
from homeostat.cli.service_flags import add_service_command
from homeostat.cli.settings import ServiceSettings
from homeostat.cli.state_directory import State
from homeostat.composition.access import access, check_identity, policy
from homeostat.composition.api_process import api
from homeostat.composition.clouds import outbound_rules, shared_environment
from homeostat.composition.database import migrate
from homeostat.composition.garbage import spare_the_collector
from homeostat.composition.worker_process import worker

SERVICE = (
    "homeostat.api.server",
    "homeostat.clouds.installed",
    "homeostat.clouds.local",
    "homeostat.clouds.simulated",
    "homeostat.clustering.resources.api",
    "homeostat.convergence.worker",
    "homeostat.plugins.cloud",
)
"""Modules that the processes of a service need."""


def serve(arguments: Namespace) -> int:
    """Run a service, and restart its API processes and workers when they die; `--detach` runs it in the background."""
    settings = ServiceSettings.of(arguments)
    state = State(settings.state)
    with state.claim():
        if not arguments.detach:
            start_logging(settings.log_level, settings.log_json)
            # Report wrong settings here once, instead of in processes that die and are restarted again and again.
            access(settings)
            check_identity(settings)
            policy(settings)
            outbound_rules(settings)
            shared_environment(settings)
            migrate(settings)
            check_board(settings)
            supervise(settings, run_process, load_service)
            return OK
    service = start_detached(settings)
    text = f"Homeostat answers at {service.url} and shows stacks at {service.url}/dashboard/"
    sys.stdout.write(f"{text} (process {service.pid}, log {state.log})\n")
    return OK


def load_service() -> None:
    """Load the modules of API processes and workers before the fork, so that the processes share the memory.

    Plug-ins are left out. A third-party package may start threads, open connections or take locks when it is imported,
    and these do not survive a fork. Each process imports plug-ins itself.
    """
    for name in SERVICE:
        import_module(name)
    spare_the_collector()


def check_board(settings: ServiceSettings) -> None:
    """Check that Redis answers, if it is the job board.

    Raises:
        Problem: Redis does not answer.
    """
    if not settings.redis_url:
        return
    from homeostat.convergence.jobs import redis_board
    from homeostat.model.errors import Transient, in_detail

    try:
        redis_board.check(settings.redis_url)
    except Transient as error:
        raise Problem(f"workers would find no jobs, look at --board: {in_detail(error)}") from error


def run_process(argv: Sequence[str]) -> int:
    """Run a process of the service in this process; return its exit code."""
    parser = ArgumentParser("homeostat")
    _add_processes(parser.add_subparsers(dest="command"))
    return run(parser, argv)


# -- flags -------------------------------------------------------------------------------------------------------------


def add_commands(commands: Commands) -> None:
    command = add_service_command(
        commands,
        serve,
        "serve",
        "homeostat serve\n  homeostat serve --detach --port 0\n"
        "  homeostat serve --database postgresql+psycopg://user:secret@db/homeostat --workers 2\n"
        "  homeostat serve --database postgresql+psycopg://… --workers 4 --board redis://redis-host:6379/0",
    )
    command.add_argument("--detach", action="store_true", help="start it in the background and wait until it answers")
    add_option(command, "workers", 1, "worker processes", type=int, metavar="N")
    add_option(command, "apis", 1, "API processes; all answer at the one address", type=int, metavar="N")
    _add_processes(commands)


def _add_processes(commands: Commands) -> None:
    command = add_service_command(commands, api, "api", "homeostat api --database postgresql+psycopg://…")
    command.add_argument("--fd", type=int, help="listen on this inherited socket instead of --host and --port")
    add_service_command(commands, worker, "worker", "homeostat worker --database postgresql+psycopg://…")
