"""The command `doctor`, with its flags."""

import contextlib
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from homeostat.cli.flags import Commands, add_encryption_keys, add_operator_command, add_option, add_plugins
from homeostat.cli.operator_commands import load_plugins, open_database, read_keys, state_of
from homeostat.cli.service_flags import add_access_mode, add_keystone_config, add_openstack, add_service_flags
from homeostat.cli.settings import CLOUDS, ServiceSettings

if TYPE_CHECKING:
    from homeostat.doctor.checks import Check
    from homeostat.store.database import Database


def doctor(arguments: Namespace) -> int:
    """Check the service; the exit code says whether a check failed (warnings do not count)."""
    from homeostat.cli import reports

    load_plugins(arguments)
    root = state_of(arguments).cloud if arguments.cloud == "local" else None
    with contextlib.closing(open_database(arguments)) as db:
        read_keys(db, arguments)
        more = _openstack(arguments, db) if arguments.cloud == "openstack" else iter(())
        return reports.doctor(db, root, more, as_json=arguments.json, acknowledge=arguments.acknowledge)


def _openstack(arguments: Namespace, db: "Database") -> "Iterator[Check]":
    """Yield the checks of the service's OpenStack.

    Raises:
        Usage: A setting is wrong.
    """
    service = ArgumentParser()
    add_service_flags(service)
    settings = ServiceSettings.of(Namespace(**{**vars(service.parse_args([])), **vars(arguments)}))

    from homeostat.cli.openstack_checks import examine_openstack
    from homeostat.composition.clouds import notification_config, openstack_connections, request_limits
    from homeostat.doctor.checks import Check, Level
    from homeostat.store.builtin import stored_trusts

    def checks() -> Iterator[Check]:
        if not db.schema_status().usable:
            return
        project = ""
        if not settings.os_cloud:
            with db.read() as tx:
                project = stored_trusts.some_project(tx)
            if not project:
                remedy = "create a stack: its owner lets the service act in the project"
                yield Check("openstack", Level.WARN, "no owner of a stack trusts the service yet", remedy)
                return
        with contextlib.closing(openstack_connections(settings, db)) as connections:
            yield from examine_openstack(
                db, connections, project, request_limits(settings), notification_config(settings)
            )

    return checks()


def add_commands(commands: Commands) -> None:
    command = add_operator_command(
        commands,
        doctor,
        "doctor",
        "homeostat doctor\n  homeostat doctor --json | jq '.checks[] | select(.level != \"ok\")'",
    )
    command.add_argument(
        "--acknowledge", action="store_true", help="remove dead workers from the register, once you know why they died"
    )
    where = "where resources are created: on this machine, in an OpenStack, or in memory"
    add_option(command, "cloud", "local", where, choices=CLOUDS)
    add_openstack(command)
    add_access_mode(command)
    add_keystone_config(command)
    add_encryption_keys(command)
    add_plugins(command)
