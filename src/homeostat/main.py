"""The entry point, which puts the parts together: the only place that knows which adapter serves which port.

Imports are inside the functions on purpose: a process loads what its command needs, so that a client command starts
without loading the engine.
"""

import contextlib
import logging
import os
import signal
import socket
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from homeostat.cli import commands, history, plan, stack_actions
from homeostat.cli.arguments import parse
from homeostat.cli.errors import OK, Problem, Usage
from homeostat.cli.logs import start_logging
from homeostat.cli.service import start_detached, supervise, url_of
from homeostat.cli.settings import ServiceSettings, with_own_region
from homeostat.cli.state_directory import State

if TYPE_CHECKING:
    from homeostat.api.access.auth import Access
    from homeostat.api.access.enforcer import Policy
    from homeostat.api.cloudformation.authentication import Ec2
    from homeostat.clouds.credentials import Credentials
    from homeostat.clouds.heat_api import Regions
    from homeostat.clouds.identity.keystone import Keystone
    from homeostat.clouds.local import LocalCloud
    from homeostat.clouds.outbound import Rules
    from homeostat.clouds.port import Cloud, Clouds
    from homeostat.clouds.simulated import SimulatedCloud
    from homeostat.identity.stack_users import StackUsers
    from homeostat.identity.trusts import StackTrusts
    from homeostat.store.database import Database
    from homeostat.templates.shared_environments import SharedEnvironment

LOG = logging.getLogger(__name__)
ROOT = 0
"""User id of the superuser, who may use the service in any case."""
SERVICE = (
    "homeostat.api.server",
    "homeostat.clouds.installed",
    "homeostat.clouds.local",
    "homeostat.clouds.simulated",
    "homeostat.convergence.worker",
    "homeostat.plugins.cloud",
)
"""Modules that the processes of a service need."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code (see `cli.errors`)."""
    arguments = parse(argv)
    try:
        return COMMANDS[arguments.command](arguments)
    except Problem as problem:
        commands.report(problem, as_json=arguments.json)
        return problem.code
    except KeyboardInterrupt:
        commands.report_interrupt(arguments)
        return 128 + signal.SIGINT


def serve(arguments: Namespace) -> int:
    """Run a service, whose API processes and workers are restarted when they die; `--detach` starts it and returns."""
    settings = ServiceSettings.of(arguments)
    state = State(settings.state)
    with state.claim():
        if not arguments.detach:
            start_logging(settings.log_level, settings.log_json)
            # These are made only to report wrong settings here, once, instead of in processes that die and are
            # restarted again and again.
            access(settings)
            check_identity(settings)
            policy(settings)
            fetching(settings)
            shared(settings)
            migrate(settings)
            check_board(settings)
            supervise(settings, main, load_service)
            return OK
    service = start_detached(settings)
    sys.stdout.write(f"Homeostat answers at {service.url} (process {service.pid}, log {state.log})\n")
    return OK


def load_service() -> None:
    """Load what API and workers need once, before they are forked, so that they share the memory.

    Plug-ins are left out. A third-party package may start threads, open connections or take locks when it is imported,
    and these do not survive a fork. Each process imports plug-ins itself.
    """
    for name in SERVICE:
        import_module(name)
    from homeostat.desired.cache import spare_the_collector

    spare_the_collector()


def api(arguments: Namespace) -> int:
    """Run one API process until SIGTERM or SIGINT."""
    from homeostat.api.app import Limits
    from homeostat.api.server import ApiSettings, run_api
    from homeostat.api.services.quotas import Quotas
    from homeostat.clock import AgreedClock, Entropy
    from homeostat.desired.cache import spare_the_collector
    from homeostat.model.rates import read_rate

    settings = ServiceSettings.of(arguments)
    start_logging(settings.log_level, settings.log_json)
    plugins(arguments)
    there = ApiSettings(
        host=settings.host,
        port=settings.port,
        limits=Limits(
            body_bytes_max=settings.max_body,
            rate=read_rate(settings.rate_limit),
            places=settings.heavy_requests,
            hidden_tags=settings.hidden_tags,
        ),
        quotas=Quotas(
            stacks_max=settings.stacks_max,
            resources_max=settings.resources_max,
            expanded_max=settings.expanded_max,
            depth_max=settings.depth_max,
            previewed_max=settings.previewed_max,
            heal_share=settings.heal_share,
            snapshots_max=settings.snapshots_max,
            adopt=not settings.no_adopt,
            abandon=not settings.no_abandon,
        ),
        metrics=settings.metrics,
        fetching=fetching(settings),
        shared=shared(settings),
        policy=policy(settings),
        makes_users=makes_users(settings),
        ec2=ec2(settings),
    )
    listening = None if arguments.fd is None else socket.socket(fileno=arguments.fd)
    with (
        ready_database(settings) as db,
        traced(settings, "api"),
        clouds(settings, db) as (_, of_project),
    ):
        trusts = delegations(settings, db)
        spare_the_collector()
        run_api(db, AgreedClock(db.agreed_now), Entropy(), access(settings), there, listening, of_project, trusts)
    return OK


def worker(arguments: Namespace) -> int:
    """Run one worker until SIGTERM or SIGINT; it finishes its passes then, and gives its shards back."""
    from homeostat.clock import AgreedClock, Entropy
    from homeostat.clouds.outbound import Outbound
    from homeostat.convergence.limits import Limits
    from homeostat.convergence.worker import Worker
    from homeostat.desired.cache import spare_the_collector
    from homeostat.model.errors import Transient
    from homeostat.notifications.sinks import Sinks, installed_sinks
    from homeostat.observability.memory import Memory

    settings = ServiceSettings.of(arguments)
    start_logging(settings.log_level, settings.log_json)
    plugins(arguments)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    regions(settings, None).close()  # reports wrong settings before anything is begun
    with (
        ready_database(settings) as db,
        clouds(settings, db) as (there, of_project),
        traced(settings, "worker"),
    ):
        if settings.metrics_port is not None:
            serve_metrics(db, settings.metrics_host, settings.metrics_port)
        trusts = delegations(settings, db)
        each = Worker(
            db,
            there,
            AgreedClock(db.agreed_now),
            Entropy(),
            Limits(
                depth_max=settings.depth_max,
                resources_max=settings.resources_max,
                heal_share=settings.heal_share,
                forget_workers_s=settings.forget_workers_s,
            ),
            redis_url=settings.redis_url,
            clouds=of_project,
            sinks=Sinks(of_project, Outbound(fetching(settings)), installed_sinks().kinds),
            tidying=[each.tidy for each in (trusts, stack_users(settings, db), Memory()) if each is not None],
        )
        spare_the_collector()
        try:
            each.start()
        except Transient as error:
            raise Problem(f"the worker cannot start, look at --board: {error}") from error
        stop.wait()
        each.stop()
    return OK


@contextlib.contextmanager
def traced(settings: ServiceSettings, process: str) -> Iterator[None]:
    """Make traces while the block runs, where the settings ask for them; send what is left at its end."""
    if not settings.traces:
        yield
        return
    from homeostat.observability import tracing

    tracing.start(process)
    try:
        yield
    finally:
        tracing.stop()


def serve_metrics(db: "Database", host: str, port: int) -> None:
    """Serve metrics on a port of its own.

    Raises:
        Problem: The port cannot be used.
    """
    from homeostat.observability import prometheus

    try:
        prometheus.serve(db, host, port)
    except OSError as error:
        raise Problem(f"cannot show metrics on {host}:{port}, choose another --metrics-port: {error}") from error


def doctor(arguments: Namespace) -> int:
    """Check the service; the exit code says whether a check failed (warnings do not count)."""
    from homeostat.cli import operator_commands

    plugins(arguments)
    root = State(arguments.state_dir.expanduser().absolute()).cloud if arguments.cloud == "local" else None
    with contextlib.closing(existing_database(arguments)) as db:
        read_keys(db, arguments)
        return operator_commands.doctor(db, root, as_json=arguments.json, acknowledge=arguments.acknowledge)


def plugins(arguments: Namespace) -> None:
    """Register the resource types of plug-ins; to be called before the first use of a type."""
    from homeostat.plugins import loading

    directories = [each.expanduser().absolute() for each in arguments.plugins]
    loading.install(directories, heat_imports=arguments.heat_imports)


def types(arguments: Namespace) -> int:
    """List the resource types, or show one."""
    from homeostat.cli import operator_commands
    from homeostat.model.errors import Rejected

    plugins(arguments)
    try:
        return operator_commands.types(arguments.name, as_json=arguments.json)
    except Rejected as error:
        raise Usage(str(error)) from error


def policies(arguments: Namespace) -> int:
    """Show the access rules, check a policy file, or print a sample of one."""
    from homeostat.api.access.enforcer import read_policy
    from homeostat.api.orchestration import policy_text
    from homeostat.cli import operator_commands

    if arguments.what == "generate":
        sys.stdout.write(policy_text.sample())
        return OK
    if arguments.what == "check" and arguments.file is None:
        raise Usage("policy check needs the FILE to check")
    try:
        said = read_policy(arguments.file) if arguments.file is not None else {}
    except (OSError, ValueError) as error:
        raise Problem(str(error)) from error
    if arguments.what == "check":
        return operator_commands.policy_changes(policy_text.changes(said), as_json=arguments.json)
    return operator_commands.policy_rules(policy_text.rows(said), as_json=arguments.json)


def purge(arguments: Namespace) -> int:
    """Delete old rows from the database."""
    from homeostat.cli import operator_commands
    from homeostat.store.operation.purge import Rules

    with contextlib.closing(existing_database(arguments)) as db:
        rules = Rules(time.time() - arguments.older_than, arguments.events_per_stack)
        return operator_commands.purge(db, rules, dry_run=arguments.dry_run, as_json=arguments.json)


def register(arguments: Namespace) -> int:
    """Register the service in Keystone, and write the file by which it reaches Keystone."""
    if find_spec("keystonemiddleware") is None:
        raise Usage("this needs packages that are not installed: pip install 'homeostat[keystone]'")
    from homeostat.cli import registration

    return registration.register(arguments)


def migrate_database(arguments: Namespace) -> int:
    """Bring the schema of the database to this version, or through one phase of that."""
    from homeostat.cli import operator_commands
    from homeostat.store.sql.migration import Phase

    State(arguments.state_dir.expanduser().absolute()).make()
    with contextlib.closing(existing_database(arguments)) as db:
        return operator_commands.migrate(db, Phase(arguments.phase), as_json=arguments.json)


def keys(arguments: Namespace) -> int:
    """Generate, rotate or show the keys that encrypt secrets."""
    from homeostat.cli import key_commands

    state = State(arguments.state_dir.expanduser().absolute())
    path = key_commands.key_file(arguments.encryption_keys, state.root)
    if arguments.act == "generate":
        state.make()
        return key_commands.generate(path, as_json=arguments.json)
    with contextlib.closing(existing_database(arguments)) as db:
        if arguments.act == "rotate":
            return key_commands.rotate(db, path, same_key=arguments.same_key, as_json=arguments.json)
        read_keys(db, arguments)
        return key_commands.status(db, path, as_json=arguments.json)


def use_keys(db: "Database", chosen: str, state: Path) -> None:
    """Give the database the keys that encrypt secrets; to be called before anything is read or written.

    Raises:
        Problem: The keys cannot be used.
    """
    from homeostat.cli import key_commands

    key_commands.use_keys(db, chosen, state)


def read_keys(db: "Database", arguments: Namespace) -> None:
    """Give the database the existing keys, for commands that only read.

    Raises:
        Usage: The file of keys cannot be used.
    """
    from homeostat.cli import key_commands

    key_commands.read_keys(db, arguments.encryption_keys, arguments.state_dir.expanduser().absolute())


def existing_database(arguments: Namespace) -> "Database":
    """Open the database of a service, for the operator's commands.

    Raises:
        Problem: The URL is wrong.
    """
    from sqlalchemy.exc import SQLAlchemyError

    from homeostat.store.database import Database, sqlite_url

    state = State(arguments.state_dir.expanduser().absolute())
    try:
        return Database(arguments.database or sqlite_url(state.database), time.time)
    except (SQLAlchemyError, ImportError) as error:
        raise Problem(f"the database cannot be used, look at --database: {error}") from error


def migrate(settings: ServiceSettings) -> None:
    """Bring the database to this version before any process of the service uses it.

    Raises:
        Problem: The database cannot be used.
    """
    from sqlalchemy.exc import SQLAlchemyError

    from homeostat.model.errors import Transient
    from homeostat.store.sql.migration import Outdated, Phase

    try:
        with contextlib.closing(database(settings)) as db:
            # Services of the version before may run on a shared database: contracting it would break them (ADR 0015).
            alone = db.is_sqlite or not db.schema_status().heads
            db.migrate(Phase.ALL if alone else Phase.EXPAND)
            use_keys(db, settings.encryption_keys, settings.state)
    except (Outdated, Transient, SQLAlchemyError, ImportError) as error:
        raise Problem(f"the database cannot be used, look at --database: {error}") from error


def check_board(settings: ServiceSettings) -> None:
    """Make sure that Redis answers, where the job board is there.

    Raises:
        Problem: It does not.
    """
    if not settings.redis_url:
        return
    from homeostat.convergence.jobs import redis_board
    from homeostat.model.errors import Transient

    try:
        redis_board.check(settings.redis_url)
    except Transient as error:
        raise Problem(f"workers would find no jobs, look at --board: {error}") from error


def check_schema(db: "Database") -> None:
    """Make sure that this version can run on the database's schema.

    A database that does not answer now is no error: the process waits for it later.

    Raises:
        Problem: The schema is that of another version.
    """
    from homeostat.model.errors import Transient

    try:
        usable = db.schema_status().usable
    except Transient as error:
        LOG.warning("starting all the same: %s", error)
        return
    if not usable:
        raise Problem("the schema of the database is not that of this version: run `homeostat migrate --phase expand`")


def database(settings: ServiceSettings) -> "Database":
    """Open the database of this service; by default an SQLite file in the state directory."""
    from homeostat.store.database import Database, sqlite_url

    state = State(settings.state)
    state.make()
    return Database(settings.database or sqlite_url(state.database), time.time)


@contextlib.contextmanager
def ready_database(settings: ServiceSettings) -> "Iterator[Database]":
    """Open the database for a process of the service, checked and with its keys.

    Raises:
        Problem: This version cannot run on it.
    """
    with contextlib.closing(database(settings)) as db:
        check_schema(db)
        use_keys(db, settings.encryption_keys, settings.state)
        yield db


def access(settings: ServiceSettings) -> "Access":
    """Return who may use the API, and how users authenticate.

    Raises:
        Usage: The file of users, or the configuration of Keystone, is wrong.
    """
    from homeostat.api.access.auth import BasicAccess, NoAccess

    if settings.access == "keystone" and settings.keystone_config is not None:
        from homeostat.api.access.keystone import KeystoneAccess

        identity(settings)  # reports what is wrong with the file; keystonemiddleware does not
        try:
            return KeystoneAccess(settings.keystone_config)
        except ValueError as error:
            raise Usage(f"--keystone-config {error}") from error
    if settings.htpasswd is None or settings.access == "none":
        return NoAccess(None if settings.all_local_users else {os.geteuid(), ROOT})
    try:
        return BasicAccess(settings.htpasswd)
    except (OSError, ValueError) as error:
        raise Usage(f"--htpasswd: {error}") from error


@cache
def identity(settings: ServiceSettings) -> "Keystone | None":
    """Return the connection to Keystone; None without Keystone.

    Raises:
        Usage: Its configuration file is wrong.
    """
    if settings.access != "keystone" or settings.keystone_config is None:
        return None
    from homeostat.clouds.identity.config import read_config
    from homeostat.clouds.identity.keystone import Keystone

    try:
        return Keystone(read_config(settings.keystone_config))
    except ValueError as error:
        raise Usage(f"--keystone-config {error}") from error


def ec2(settings: ServiceSettings) -> "Ec2 | None":
    """Return what verifies requests that are signed with EC2 keys of users; None without Keystone.

    Raises:
        Usage: The configuration file of Keystone is wrong.
    """
    there = identity(settings)
    if there is None:
        return None
    from homeostat.api.cloudformation.ec2 import KeystoneEc2

    return KeystoneEc2(there)


def delegations(settings: ServiceSettings, db: "Database") -> "StackTrusts | None":
    """Return the trusts of users in the service; None without Keystone."""
    keystone = identity(settings)
    if keystone is None:
        return None
    from homeostat.clock import Entropy
    from homeostat.clouds.identity.trusts import Trusts
    from homeostat.identity.trusts import StackTrusts

    return StackTrusts(db, Trusts(keystone), Entropy(), frozenset(keystone.config.roles))


def makes_users(settings: ServiceSettings) -> bool:
    """Return whether the service may create users for servers."""
    keystone = identity(settings)
    return keystone is not None and keystone.config.has_users


def stack_users(settings: ServiceSettings, db: "Database") -> "StackUsers | None":
    """Return the users that the service creates for servers; None where it may not create any."""
    keystone = identity(settings)
    if keystone is None or not keystone.config.has_users:
        return None
    from homeostat.clock import Entropy
    from homeostat.clouds.identity.users import DomainUsers
    from homeostat.identity.stack_users import StackUsers

    return StackUsers(db, DomainUsers(keystone), Entropy())


def check_identity(settings: ServiceSettings) -> None:
    """Warn when Keystone does not answer, or does not know the service; it may do so later."""
    from homeostat.model.errors import HomeostatError

    there = identity(settings)
    try:
        if there is not None:
            there.check()
    except HomeostatError as error:
        LOG.warning("starting all the same, but all requests are refused until this works: %s", error)
    finally:
        # Forked processes must not share the connection: each makes its own.
        identity.cache_clear()


def policy(settings: ServiceSettings) -> "Policy":
    """Return the access rules.

    Raises:
        Usage: The policy file is wrong; the error names the line.
    """
    from homeostat.api.access.enforcer import Policy

    try:
        return Policy(settings.policy_file, old_defaults=settings.old_policy_defaults)
    except (OSError, ValueError) as error:
        raise Usage(f"--policy-file: {error}") from error


def fetching(settings: ServiceSettings) -> "Rules":
    """Return the rules for what the service may fetch by URL.

    Raises:
        Usage: An entry is wrong; the error names it.
    """
    from homeostat.clouds.outbound import read_rules

    try:
        return read_rules(settings.fetch_from)
    except ValueError as error:
        raise Usage(f"--fetch-from {error}") from error


def shared(settings: ServiceSettings) -> "SharedEnvironment":
    """Return the environment that the operator gives all stacks.

    Raises:
        Usage: A file is wrong; the error names it.
    """
    from homeostat.cli.shared_environments import read_shared

    try:
        return read_shared(settings.environment_files)
    except ValueError as error:
        raise Usage(f"--environment-file {error}") from error


@contextlib.contextmanager
def clouds(settings: ServiceSettings, db: "Database") -> "Iterator[tuple[Cloud, Clouds]]":
    """Open the clouds.

    Yields:
        The cloud that all projects share, and a function that returns what a project sees: that cloud, joined with
        other regions, the service's own records, plug-ins and installed clouds.
    """
    from homeostat.builtin.cloud import Records
    from homeostat.builtin.server_agents import ServerAgents
    from homeostat.clock import Entropy
    from homeostat.clouds.combined import JoinedCloud
    from homeostat.clouds.installed import installed_clouds
    from homeostat.plugins.cloud import PluginClouds
    from homeostat.plugins.loading import classes

    with (
        contextlib.closing(cloud(settings, db)) as there,
        contextlib.closing(regions(settings, delegations(settings, db))) as others,
        contextlib.closing(installed_clouds()) as installed,
        contextlib.closing(PluginClouds(db, classes(), monotonic=time.monotonic)) as handled,
    ):
        url = settings.public_url or url_of(settings.host, settings.port)
        own = Records(db, Entropy(), url, stack_users(settings, db))

        def of_project(project: str) -> JoinedCloud:
            joined: list[Cloud] = [others.of(project), own.of(project), handled.of(project), *installed.of(project)]
            return JoinedCloud(ServerAgents(there.of(project), own, db, project), *joined)

        handled.clouds = of_project  # handlers use the joined cloud, of which they are a part themselves
        yield there, of_project


def private_paths(settings: ServiceSettings) -> "list[Path]":
    """Return the files that user data of servers on this machine must not reach (see ADR 0044)."""
    from sqlalchemy import make_url

    from homeostat.cli.settings import NO_KEYS

    named = (settings.htpasswd, settings.keystone_config, settings.region_logins)
    url = make_url(settings.database) if settings.database else None
    file = Path(url.database).absolute() if url and url.get_backend_name() == "sqlite" and url.database else None
    keys = Path(settings.encryption_keys).expanduser() if settings.encryption_keys not in ("", NO_KEYS) else None
    return [path for path in (settings.state, keys, file, *named) if path is not None]


def cloud(settings: ServiceSettings, db: "Database") -> "LocalCloud | SimulatedCloud":
    """Return the cloud that the settings name."""
    from homeostat.clouds.heat_api import KIND
    from homeostat.clouds.local import LocalCloud
    from homeostat.clouds.simulated import KINDS, SimulatedCloud
    from homeostat.store.operation import cloud_identities

    adapters: Mapping[str, Callable[[], LocalCloud | SimulatedCloud]] = {
        "local": lambda: LocalCloud(
            State(settings.state).cloud, cloud_identities.CloudLedger(db, "local"), private_paths(settings)
        ),
        "simulated": lambda: SimulatedCloud(time.time, kinds=KINDS - {KIND}),  # stacks in regions are real
    }
    return adapters[settings.cloud]()


def regions(settings: ServiceSettings, credentials: "Credentials | None") -> "Regions":
    """Return the regions in which `OS::Heat::Stack` may make stacks.

    Raises:
        Usage: A setting is wrong; the error says which.
    """
    from homeostat.clouds.heat_api import Regions, read_logins, read_regions

    try:
        logins = read_logins(settings.region_logins.read_text()) if settings.region_logins is not None else {}
    except (OSError, ValueError) as error:
        raise Usage(f"--region-logins {settings.region_logins}: {error}") from error
    keystone, own = identity(settings), url_of(settings.host, settings.port)
    try:
        known = read_regions(with_own_region(settings.regions, own), logins)
    except ValueError as error:
        raise Usage(f"--region {error}") from error
    return Regions(known, credentials=credentials, own=keystone.config.region if keystone is not None else "")


COMMANDS: Mapping[str, Callable[[Namespace], int]] = {
    "serve": serve,
    "api": api,
    "worker": worker,
    "doctor": doctor,
    "purge": purge,
    "migrate": migrate_database,
    "keys": keys,
    "types": types,
    "policy": policies,
    "register": register,
    "up": commands.up,
    "plan": plan.plan,
    "watch": commands.watch,
    "list": commands.list_,
    "show": commands.show,
    "events": commands.events,
    "explain": commands.explain,
    "observe": stack_actions.observe,
    "converge": stack_actions.converge,
    "check": stack_actions.check,
    "suspend": stack_actions.suspend,
    "resume": stack_actions.resume,
    "lock": stack_actions.lock,
    "unlock": stack_actions.unlock,
    "convergence": stack_actions.convergence,
    "history": history.history,
    "back": history.back,
    "down": commands.down,
}

if __name__ == "__main__":
    sys.exit(main())
