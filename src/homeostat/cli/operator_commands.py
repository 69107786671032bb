"""The commands of operators, with their flags. They work on the database, with or without a running service.

Imports are inside the functions, since client commands must start without loading the database's code.
"""

import contextlib
import time
from argparse import Namespace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from homeostat.cli.errors import Problem, Usage
from homeostat.cli.flags import (
    Commands,
    add_command,
    add_encryption_keys,
    add_json,
    add_operator_command,
    add_option,
    add_plugins,
    age_s,
    natural,
)
from homeostat.cli.state_directory import State

if TYPE_CHECKING:
    from homeostat.store.database import Database


def types(arguments: Namespace) -> int:
    """List the resource types, or show a type."""
    from homeostat.cli import reports
    from homeostat.model.errors import Rejected

    load_plugins(arguments)
    try:
        return reports.types(arguments.name, as_json=arguments.json)
    except Rejected as error:
        raise Usage(str(error)) from error


def purge(arguments: Namespace) -> int:
    """Delete old rows from the database."""
    from homeostat.cli import maintenance
    from homeostat.store.operation.purge import Rules

    with contextlib.closing(open_database(arguments)) as db:
        rules = Rules(time.time() - arguments.older_than, arguments.events_per_stack)
        return maintenance.purge(db, rules, dry_run=arguments.dry_run, as_json=arguments.json)


def migrate(arguments: Namespace) -> int:
    """Migrate the schema of the database to this version, or through a single phase."""
    from homeostat.cli import maintenance
    from homeostat.store.sql.migration import Phase

    state_of(arguments).make()
    with contextlib.closing(open_database(arguments)) as db:
        return maintenance.migrate(db, Phase(arguments.phase), as_json=arguments.json)


def register(arguments: Namespace) -> int:
    """Register the service in Keystone, and write its configuration file for Keystone."""
    if find_spec("keystonemiddleware") is None:
        raise Usage("this needs packages that are not installed: pip install 'homeostat[keystone]'")
    from homeostat.cli import registration

    return registration.register(arguments)


def keys(arguments: Namespace) -> int:
    """Generate, rotate or show the keys that encrypt secrets."""
    from homeostat.cli import key_commands

    state = state_of(arguments)
    path = key_commands.key_file(arguments.encryption_keys, state.root)
    if arguments.act == "generate":
        state.make()
        return key_commands.generate(path, as_json=arguments.json)
    with contextlib.closing(open_database(arguments)) as db:
        if arguments.act == "rotate":
            return key_commands.rotate(db, path, same_key=arguments.same_key, as_json=arguments.json)
        read_keys(db, arguments)
        return key_commands.status(db, path, as_json=arguments.json)


def load_plugins(arguments: Namespace) -> None:
    """Register the resource types of plug-ins, before the first use of a type."""
    from homeostat.plugins import loading

    directories = [folder.expanduser().absolute() for folder in arguments.plugins]
    loading.install(directories, heat_imports=arguments.heat_imports)


def read_keys(db: "Database", arguments: Namespace) -> None:
    """Give the database the existing keys, for commands that only read.

    Raises:
        Usage: The file of keys cannot be used.
    """
    from homeostat.cli import key_commands

    key_commands.read_keys(db, arguments.encryption_keys, arguments.state_dir.expanduser().absolute())


def state_of(arguments: Namespace) -> State:
    """Return the state directory chosen by `--state-dir`."""
    return State(arguments.state_dir.expanduser().absolute())


def open_database(arguments: Namespace) -> "Database":
    """Open the database of a service, for the operator's commands.

    Raises:
        Problem: The URL is wrong.
    """
    from sqlalchemy.exc import SQLAlchemyError

    from homeostat.clock import passed
    from homeostat.store.database import Database, sqlite_url

    state = state_of(arguments)
    try:
        return Database(arguments.database or sqlite_url(state.database), time.time, passed=passed)
    except (SQLAlchemyError, ImportError) as error:
        raise Problem(f"the database cannot be used, look at --database: {error}") from error


# -- flags -------------------------------------------------------------------------------------------------------------


def add_commands(commands: Commands) -> None:
    _add_purge(commands)
    _add_migrate(commands)
    _add_register(commands)
    _add_keys(commands)
    _add_types(commands)


def _add_purge(commands: Commands) -> None:
    command = add_operator_command(
        commands,
        purge,
        "purge",
        "homeostat purge --dry-run\n  homeostat purge --older-than 7d --events-per-stack 200",
    )
    command.add_argument(
        "--older-than",
        metavar="AGE",
        type=age_s,
        default="30d",
        help="age since the deletion or replacement: 45s, 90m, 12h, 30d",
    )
    command.add_argument(
        "--events-per-stack", metavar="N", type=natural, default=1000, help="newest events that a live stack keeps"
    )
    command.add_argument("--dry-run", action="store_true", help="only print what would be removed")


def _add_types(commands: Commands) -> None:
    command = add_command(
        commands,
        types,
        "types",
        "homeostat types\n  homeostat types 'Example::' --json",
    )
    command.add_argument("name", metavar="REGEX", nargs="?", default="", help="only names that begin like this")
    add_json(command)
    add_plugins(command)


def _add_migrate(commands: Commands) -> None:
    command = add_operator_command(
        commands,
        migrate,
        "migrate",
        "homeostat migrate --phase expand\n  homeostat migrate",
    )
    command.add_argument(
        "--phase",
        choices=("expand", "contract", "all"),
        default="all",
        help="expand: add what this version needs, beside older ones; contract: also remove what only older ones "
        "need, refused while their workers run; all: one after the other (default: all)",
    )


def _add_register(commands: Commands) -> None:
    command = add_command(
        commands,
        register,
        "register",
        "homeostat register --public-url https://heat.example.org:8004 \\\n"
        "      --keystone-config /etc/homeostat/keystone.ini\n\n"
        "The OS_ variables hold an administrator's login, as for `openstack`. Run again, the command creates what\n"
        "is missing, and moves the endpoints to another --public-url.",
    )
    add_option(command, "keystone-config", None, "file to write, or an existing one", type=Path, metavar="FILE")
    add_option(command, "public-url", "", "where clients reach the API: http://HOST:PORT", metavar="URL")
    for name, default, text in (
        ("region-name", "", "region of the endpoints (default: the only one)"),
        ("service-user", "homeostat", "user of the service (default: homeostat)"),
        ("domain", "heat", "domain for users of stacks (default: heat)"),
        ("domain-admin", "homeostat_domain_admin", "user who manages that domain (default: homeostat_domain_admin)"),
    ):
        command.add_argument(f"--{name}", default=default, metavar="NAME", help=text)
    command.add_argument("--json", action="store_true", help="print errors as JSON")


def _add_keys(commands: Commands) -> None:
    command = add_operator_command(
        commands,
        keys,
        "keys",
        "homeostat keys generate --encryption-keys /etc/homeostat/keys\n  homeostat keys status\n"
        "  homeostat keys rotate\n\n"
        "generate: make a file with a new key. Give every process of the service the same file, and keep a copy of\n"
        "it apart from the backups of the database.\n\n"
        "status: count the cells that are plain text, and those encrypted with each key.\n\n"
        "rotate: put a new key in front of the file, and encrypt all other cells with it, while the service\n"
        "runs. You can stop it at any time, and continue with --same-key.",
    )
    command.add_argument(
        "act", metavar="ACT", choices=("generate", "status", "rotate"), help="generate, status or rotate"
    )
    command.add_argument(
        "--same-key", action="store_true", help="rotate without a new key, to the first one of the file"
    )
    add_encryption_keys(command)
