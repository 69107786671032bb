"""The commands, their flags and their help."""

import os
import re
from argparse import (
    SUPPRESS,
    ArgumentParser,
    ArgumentTypeError,
    BooleanOptionalAction,
    Namespace,
    RawDescriptionHelpFormatter,
    _SubParsersAction,
)
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from homeostat.cli.settings import ACCESS_MODES, CLOUDS, LOG_LEVELS, PORT, SQL_BOARD, default_state

DESCRIPTION = "Convergent, self-healing orchestration that speaks the OpenStack Orchestration API."
EPILOG = """\
first steps:
  homeostat up examples/web-tier.yaml           create the stack, and a service if none runs; watch it come up
  homeostat show web-tier                       its resources and outputs
  homeostat up examples/web-tier.yaml -P message=Hello      change it
  homeostat explain web-tier                    what is not at rest, and why
  homeostat down web-tier                       delete it

exit codes: 0 done, 1 the operation failed, 2 wrong usage, 3 no service answers; of `plan` with
--detailed-exit-code also 4, there is something to do.
Flags shown with a [HOMEOSTAT_…] name can be given as that environment variable too.
`homeostat COMMAND --help` tells more about each command."""

Commands = Any
"""What `add_subparsers` returns; argparse has no public name for it."""


def parse(argv: Sequence[str] | None = None) -> Namespace:
    """Parse `command` and its flags. Exit with code 2 and a message when they are invalid."""
    return parser().parse_args(argv)


def parser() -> ArgumentParser:
    root = ArgumentParser(
        "homeostat", description=DESCRIPTION, epilog=EPILOG, formatter_class=RawDescriptionHelpFormatter
    )
    commands = root.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_client_commands(commands)
    _add_service_commands(commands)
    _add_operator_commands(commands)
    return root


# -- commands that talk to a service -----------------------------------------------------------------------------------


def _add_client_commands(commands: Commands) -> None:
    _add_up(commands)
    _add_plan(commands)
    watch = _client(commands, "watch", "show a stack live", "homeostat watch web-tier --until-complete")
    watch.add_argument("name", metavar="NAME", help="name or id of the stack")
    watch.add_argument("--until-complete", action="store_true", help="end when the stack is at rest, 1 if it failed")
    _client(commands, "list", "list the stacks of the project", "homeostat list --json | jq -r '.[].stack_name'")
    show = _client(
        commands, "show", "show a stack: parameters, resources, outputs", "curl $(homeostat show web-tier --output url)"
    )
    show.add_argument("name", metavar="NAME", help="name or id of the stack")
    show.add_argument("--output", metavar="KEY", help="only the value of this output, for use in scripts")
    events = _client(commands, "events", "list what happened to a stack", "homeostat events web-tier -f")
    events.add_argument("name", metavar="NAME", help="name or id of the stack")
    events.add_argument("-f", "--follow", action="store_true", help="go on with what happens next, until interrupted")
    explain = _client(
        commands,
        "explain",
        "say what is not at rest, why, since when, what would release it, and how long it will take",
        "homeostat explain web-tier\n  homeostat explain web-tier server_2",
    )
    explain.add_argument("name", metavar="NAME", help="name or id of the stack")
    explain.add_argument(
        "resource",
        metavar="RESOURCE",
        nargs="?",
        help="only this resource, at rest or not; those of nested stacks, too",
    )
    _add_history(commands)
    _add_asks(commands)
    _add_down(commands)


def _add_up(commands: Commands) -> None:
    up = _described(
        commands,
        "up",
        "create a stack, or update it if it exists, and watch it come up",
        "homeostat up examples/hello.yaml\n"
        "  homeostat up web.yaml shop -P message=Hello -P port=8080 -e production.yaml --rollback\n\n"
        "A template states the whole wish: parameters that are not given take their defaults, on updates too.\n"
        "Files named by get_file are read relative to the template. Without a service, one is started in the\n"
        "background (homeostat serve --detach).",
    )
    up.add_argument("--rollback", action=BooleanOptionalAction, help="go back to the last good state on failure")
    up.add_argument("--timeout", metavar="MIN", type=int, help="minutes until the operation counts as failed")
    up.add_argument("--no-wait", action="store_true", help="return as soon as the service has accepted it")


def _add_plan(commands: Commands) -> None:
    plan = _described(
        commands,
        "plan",
        "say what `up` would do: what is created, updated, replaced and deleted, and why; nothing is changed",
        "homeostat plan web.yaml shop -P port=8080\n"
        "  homeostat plan web.yaml --json | jq '.resource_changes.replaced[]'\n"
        "  homeostat plan web.yaml --detailed-exit-code || test $? = 4\n\n"
        "What is secret is not shown. Values that depend on what is not made yet are said to be not known.",
    )
    plan.add_argument("--detailed-exit-code", action="store_true", help="end with 4 when there is something to do")


def _described(commands: Commands, name: str, summary: str, example: str) -> ArgumentParser:
    """Add a command that takes the description of a stack."""
    command = _client(commands, name, summary, example)
    command.add_argument("template", metavar="TEMPLATE", help="template file, - for standard input")
    command.add_argument("name", metavar="NAME", nargs="?", help="name of the stack (default: the file's name)")
    command.add_argument(
        "-P", "--parameter", metavar="K=V", action="append", default=[], help="parameter; may be repeated"
    )
    command.add_argument(
        "-e",
        "--environment",
        metavar="FILE",
        action="append",
        default=[],
        type=Path,
        help="environment; later ones win",
    )
    return command


def _add_asks(commands: Commands) -> None:
    observe = _client(
        commands,
        "observe",
        "look at a stack now, and say what is not as it should be",
        "homeostat observe web-tier\n  homeostat observe web-tier server_2 --json",
    )
    converge = _client(
        commands,
        "converge",
        "look at a stack, and bring it to what it should be; what has failed is tried again",
        "homeostat converge web-tier\n  homeostat converge web-tier server_2\n\n"
        "It works also where convergence is switched off.",
    )
    check = _client(
        commands, "check", "look at every resource, tell whether it is well, change nothing", "homeostat check web-tier"
    )
    suspend = _client(
        commands, "suspend", "suspend everything in a stack, servers above all", "homeostat suspend web-tier"
    )
    resume = _client(commands, "resume", "resume a suspended stack", "homeostat resume web-tier")
    lock = _client(
        commands,
        "lock",
        "lock a stack: nobody changes it, not even convergence, until it is unlocked",
        "homeostat lock web-tier\n  homeostat lock web-tier --level stacks --reason 'new disks' --expires-in 2h",
    )
    unlock = _client(commands, "unlock", "unlock a stack", "homeostat unlock web-tier")
    lock.add_argument(
        "--level",
        choices=("all", "stacks"),
        default="all",
        help="all: lock servers and protect images, too; stacks: the stacks alone (default: %(default)s)",
    )
    lock.add_argument("--reason", metavar="TEXT", help="told to whoever is refused")
    lock.add_argument("--expires-in", metavar="TIME", type=age_s, help="unlock it by itself after 90s, 15m, 2h or 3d")
    convergence = _client(
        commands,
        "convergence",
        "show or switch whether a stack is brought back by itself, and how often it is looked at",
        "homeostat convergence web-tier\n  homeostat convergence web-tier --off\n"
        "  homeostat convergence web-tier server_2 --off --look-every 10s\n"
        "  homeostat convergence web-tier server_2 --same\n"
        "  homeostat convergence web-tier --healing ask --healing-share 0.2\n\n"
        "The switches of a stack hold for all that is nested in it.",
    )
    for command in (observe, converge, check, suspend, resume, lock, unlock, convergence):
        command.add_argument("name", metavar="NAME", help="name or id of the stack")
    for command in (observe, converge, convergence):
        command.add_argument("resource", metavar="RESOURCE", nargs="?", help="only this resource")
    for command in (observe, converge, check, suspend, resume, lock, unlock):
        command.add_argument("--no-wait", action="store_true", help="return as soon as the service has accepted it")
    switch = convergence.add_mutually_exclusive_group()
    switch.add_argument(
        "--on", dest="enabled", action="store_true", default=None, help="bring back what drifts or dies"
    )
    switch.add_argument("--off", dest="enabled", action="store_false", default=None, help="leave it as it is")
    switch.add_argument("--same", action="store_true", help="the resource goes with its stack again")
    convergence.add_argument(
        "--look-every", metavar="TIME", type=interval, help="between looks at rest: 10s, 5m, 12h, never, default"
    )
    convergence.add_argument(
        "--healing",
        choices=("replace", "ask", "default"),
        help="make anew what is gone or broken for good, or ask first",
    )
    convergence.add_argument(
        "--healing-share",
        metavar="SHARE",
        type=share_or_default,
        default=SUPPRESS,
        help="of the stack's things that is healed at a time, like 0.2, or default",
    )


def _add_history(commands: Commands) -> None:
    history = _client(
        commands,
        "history",
        "list what was wanted of a stack before, show one of these revisions, or how two of them differ",
        "homeostat history web-tier\n  homeostat history web-tier 3\n  homeostat history web-tier 3 5",
    )
    history.add_argument("name", metavar="NAME", help="name or id of the stack")
    history.add_argument("revision", metavar="REVISION", nargs="?", type=int, help="show this one")
    history.add_argument("other", metavar="OTHER", nargs="?", type=int, help="show what is different in this one")
    history.add_argument("--limit", metavar="N", type=int, default=100, help="list so many at most (default: 100)")
    back = _client(
        commands,
        "back",
        "have what was wanted by an earlier revision again; it becomes the newest, so this can be taken back as well",
        "homeostat back web-tier 3 --dry-run\n  homeostat back web-tier 3",
    )
    back.add_argument("name", metavar="NAME", help="name or id of the stack")
    back.add_argument("revision", metavar="REVISION", type=int, help="see `homeostat history NAME`")
    back.add_argument("--dry-run", action="store_true", help="say what would happen; nothing is changed")
    back.add_argument("--no-wait", action="store_true", help="return as soon as the service has accepted it")


def _add_down(commands: Commands) -> None:
    down = _client(commands, "down", "delete a stack and all it made", "homeostat down web-tier -y")
    down.add_argument("name", metavar="NAME", help="name or id of the stack")
    down.add_argument("-y", "--yes", action="store_true", help="do not ask")
    down.add_argument("--no-wait", action="store_true", help="return as soon as the service has accepted it")


def _client(commands: Commands, name: str, summary: str, example: str) -> ArgumentParser:
    command = _command(commands, name, summary, example)
    group = command.add_argument_group("service")
    _add_state(group)
    _option(group, "url", "", "where the service answers (default: the one of the state directory)", metavar="URL")
    _option(group, "project", "", "project (default: the user HOMEOSTAT_USER, or `default`)", metavar="NAME")
    command.add_argument("--json", action="store_true", help="print JSON, and nothing else")
    return command


# -- the service -------------------------------------------------------------------------------------------------------


def _add_service_commands(commands: Commands) -> None:
    serve = _service(
        commands,
        "serve",
        "run the whole service: API and workers, each a process of its own",
        "homeostat serve\n  homeostat serve --detach --port 0\n"
        "  homeostat serve --database postgresql+psycopg://user:secret@db/homeostat --workers 2\n"
        "  homeostat serve --database postgresql+psycopg://… --workers 4 --board redis://redis-host:6379/0",
    )
    serve.add_argument("--detach", action="store_true", help="start it in the background and wait until it answers")
    _option(serve, "workers", 1, "worker processes", type=int, metavar="N")
    _option(serve, "apis", 1, "API processes; all answer at the one address", type=int, metavar="N")
    api = _service(commands, "api", "run an API process alone", "homeostat api --database postgresql+psycopg://…")
    api.add_argument("--fd", type=int, help="listen on this inherited socket instead of --host and --port")
    _service(commands, "worker", "run a worker process alone", "homeostat worker --database postgresql+psycopg://…")


def _service(commands: Commands, name: str, summary: str, example: str) -> ArgumentParser:
    command = _command(commands, name, summary, example)
    command.set_defaults(workers=1, apis=1, json=False)
    _add_state(command)
    _option(command, "database", "", "database URL (default: SQLite in the state directory)", metavar="URL")
    _add_keys(command)
    board = "where workers find their jobs: sql for the database itself, or redis://HOST:PORT/DB, rediss://, unix://"
    _option(command, "board", SQL_BOARD, board, metavar="sql|URL")
    _option(command, "cloud", "local", "where resources are made: on this machine, or in memory", choices=CLOUDS)
    _option(command, "host", "127.0.0.1", "address to listen on", metavar="ADDRESS")
    _option(command, "port", PORT, "port to listen on, 0 for any free one", type=int, metavar="PORT")
    _option(
        command,
        "access",
        "none",
        "who may use the API: the user who runs it, users with passwords, or users of Keystone",
        choices=ACCESS_MODES,
    )
    _switch(command, "all-local-users", "--access none lets in every user of this machine")
    _switch(
        command,
        "users-run-code-as-me",
        "let others than who runs the service use the local cloud, whose servers are processes of that user: whoever "
        "may use it can do what that user can",
    )
    _option(command, "htpasswd", None, "users of --access basic (bcrypt)", type=Path, metavar="FILE")
    _option(
        command,
        "keystone-config",
        None,
        "how --access keystone reaches Keystone: an ini file with the section [keystone_authtoken]",
        type=Path,
        metavar="FILE",
    )
    _option(
        command,
        "policy-file",
        None,
        "who may do what, where it is not as `homeostat policy list` shows it (YAML)",
        type=Path,
        metavar="FILE",
    )
    _switch(
        command,
        "old-policy-defaults",
        "allow also what was allowed before there were readers and members: everything to everybody but stack users",
    )
    _option(
        command,
        "max-body",
        1_048_576,
        "bytes that a request may hold; a document to adopt has about 250 for each resource",
        type=int,
        metavar="BYTES",
    )
    _option(
        command,
        "rate-limit",
        "",
        "requests a second that one caller may make in one project, of each API process, and how many at once "
        "(default: any number)",
        metavar="RATE[:BURST]",
    )
    _switch(command, "no-adopt", "refuse to adopt stacks")
    _switch(command, "no-abandon", "refuse to export and to abandon stacks")
    _option(
        command,
        "stacks-max",
        512,
        "stacks that a project may have, nested ones not counted; an admin is not held to it",
        type=int,
        metavar="N",
    )
    _option(
        command,
        "resources-max",
        1_000_000,
        "resources that a stack may have, with all that is nested",
        type=int,
        metavar="N",
    )
    _option(
        command,
        "expanded-max",
        50_000,
        "resources that the nested templates of a stack may have which are given something different each",
        type=int,
        metavar="N",
    )
    _option(
        command,
        "heal-share",
        0.4,
        "share of a stack's things that is healed at a time, where the stack says nothing else",
        type=share,
        metavar="SHARE",
    )
    _option(
        command,
        "forget-workers-after",
        "10m",
        "a worker that died stays in the register, and in what `homeostat doctor` tells, for so long",
        type=age_s,
        metavar="AGE",
    )
    _option(command, "depth-max", 5, "levels of nested stacks that a stack may have", type=int, metavar="N")
    _option(command, "previewed-max", 10_000, "resources that a preview tells of", type=int, metavar="N")
    _option(
        command,
        "heavy-requests",
        4,
        "requests that check templates (create, update, preview, validate) at the same time, of each API process; one "
        "project has at most half of these places, others wait for theirs in turn",
        type=int,
        metavar="N",
    )
    _option(command, "snapshots-max", 32, "snapshots that a stack may have", type=int, metavar="N")
    command.add_argument(
        "--hidden-tag",
        metavar="TAG",
        action="append",
        default=os.environ.get("HOMEOSTAT_HIDDEN_TAG", "").split(),
        help="stacks with this tag are listed only on demand (`--hidden`), may be repeated [HOMEOSTAT_HIDDEN_TAG]",
    )
    _switch(command, "metrics", "the API shows metrics at /metrics, to whom it would answer otherwise")
    _option(command, "metrics-port", None, "a worker shows metrics at this port, 0 for any", type=int, metavar="PORT")
    _option(command, "metrics-host", "127.0.0.1", "address of --metrics-port, open to all", metavar="ADDRESS")
    _switch(command, "traces", "send traces over OTLP; OTEL_* variables say where to and how")
    command.add_argument(
        "--region",
        metavar="NAME=URL",
        action="append",
        default=os.environ.get("HOMEOSTAT_REGION", "").split(),
        help="another service where OS::Heat::Stack may make stacks, may be repeated; `default` is this service's own "
        "API [HOMEOSTAT_REGION]",
    )
    _option(
        command,
        "region-logins",
        None,
        "lines REGION USER:PASSWORD [PROJECT] for regions that ask for a password",
        type=Path,
        metavar="FILE",
    )
    command.add_argument(
        "--fetch-from",
        metavar="HOST|NETWORK",
        action="append",
        default=os.environ.get("HOMEOSTAT_FETCH_FROM", "").split(),
        help="a host, address or network that is not on the public internet, from which templates may be fetched by "
        "URL, and to which event sinks may post, all the same, may be repeated [HOMEOSTAT_FETCH_FROM]",
    )
    command.add_argument(
        "--environment-file",
        metavar="FILE",
        action="append",
        default=os.environ.get("HOMEOSTAT_ENVIRONMENT_FILE", "").split(),
        help="an environment whose resource_registry and parameter_defaults hold for all stacks, may be repeated: "
        "later ones win [HOMEOSTAT_ENVIRONMENT_FILE]",
    )
    _add_plugins(command)
    _option(
        command, "public-url", "", "where servers reach the API, to signal (default: where it listens)", metavar="URL"
    )
    _option(command, "log-level", "info", "what is logged", choices=LOG_LEVELS)
    _switch(command, "log-json", "log JSON, one object a line")
    return command


# -- looking after it --------------------------------------------------------------------------------------------------


def _add_operator_commands(commands: Commands) -> None:
    doctor = _operator(
        commands,
        "doctor",
        "look whether all is well with the service, running or not, and say what to do",
        "homeostat doctor\n  homeostat doctor --json | jq '.checks[] | select(.level != \"ok\")'",
    )
    doctor.add_argument(
        "--acknowledge", action="store_true", help="take workers that died out of the register, you know why they did"
    )
    _option(doctor, "cloud", "local", "where resources are made: on this machine, or in memory", choices=CLOUDS)
    purge = _operator(
        commands,
        "purge",
        "remove stacks deleted long ago, old events, revisions and files that no stack needs, from the database",
        "homeostat purge --dry-run\n  homeostat purge --older-than 7d --events-per-stack 200",
    )
    purge.add_argument(
        "--older-than",
        metavar="AGE",
        type=age_s,
        default="30d",
        help="deleted, or replaced, so long ago: 45s, 90m, 12h, 30d",
    )
    purge.add_argument(
        "--events-per-stack", metavar="N", type=_natural, default=1000, help="newest events that a live stack keeps"
    )
    purge.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    _add_migrate(commands)
    _add_register(commands)
    _add_key_commands(commands, doctor)
    types = _command(
        commands,
        "types",
        "list the resource types of this installation, and where each comes from",
        "homeostat types\n  homeostat types 'Example::' --json",
    )
    types.add_argument("name", metavar="REGEX", nargs="?", default="", help="only names that begin like this")
    types.add_argument("--json", action="store_true", help="print JSON, and nothing else")
    for command in (doctor, types):
        _add_plugins(command)
    _add_policy(commands)


def _add_policy(commands: Commands) -> None:
    policy = _command(
        commands,
        "policy",
        "say who may do what, write a sample of a policy file, or check one",
        "homeostat policy list\n  homeostat policy generate > policy.yaml\n  homeostat policy check policy.yaml",
    )
    policy.add_argument(
        "what",
        metavar="list|generate|check",
        choices=("list", "generate", "check"),
        help="list: the rules and whom they allow; generate: a file with all of them, as comments; check: what a file "
        "changes, and which line of it is wrong",
    )
    policy.add_argument("file", metavar="FILE", nargs="?", type=Path, help="of check; of list, rules as it has them")
    policy.add_argument("--json", action="store_true", help="print JSON, and nothing else")


def _add_plugins(command: ArgumentParser) -> None:
    command.add_argument(
        "--plugins",
        metavar="DIR",
        action="append",
        type=Path,
        default=[Path(each) for each in os.environ.get("HOMEOSTAT_PLUGINS", "").split(os.pathsep) if each],
        help="directory with modules of resource types written with handle_create and the like, may be repeated "
        "[HOMEOSTAT_PLUGINS]",
    )
    _switch(command, "heat-imports", "such modules may import heat.engine, where Heat is not installed")


def _add_migrate(commands: Commands) -> None:
    migrate = _operator(
        commands,
        "migrate",
        "bring the schema of the database to this version, in two phases if older versions still run",
        "homeostat migrate --phase expand\n  homeostat migrate",
    )
    migrate.add_argument(
        "--phase",
        choices=("expand", "contract", "all"),
        default="all",
        help="expand: add what this version needs, beside older ones; contract: also take away what only older ones "
        "need, refused while their workers run; all: one after the other (default: all)",
    )


def _add_register(commands: Commands) -> None:
    register = _command(
        commands,
        "register",
        "make the service known to Keystone: users, roles, domain, catalogue; write the file to reach it with",
        "homeostat register --public-url https://heat.example.org:8004 \\\n"
        "      --keystone-config /etc/homeostat/keystone.ini\n\n"
        "An administrator's login is taken from the OS_ variables, as `openstack` takes it. Run again, it makes what\n"
        "is missing, and moves the endpoints to another --public-url.",
    )
    _option(
        register, "keystone-config", None, "the file to write, or that was written before", type=Path, metavar="FILE"
    )
    _option(register, "public-url", "", "where clients reach the API: http://HOST:PORT", metavar="URL")
    register.add_argument(
        "--region-name", default="", metavar="NAME", help="region of the endpoints (default: the only one)"
    )
    register.add_argument(
        "--service-user", default="homeostat", metavar="NAME", help="user of the service (default: homeostat)"
    )
    register.add_argument("--domain", default="heat", metavar="NAME", help="domain for users of stacks (default: heat)")
    register.add_argument(
        "--domain-admin",
        default="homeostat_domain_admin",
        metavar="NAME",
        help="who makes users there (default: homeostat_domain_admin)",
    )
    register.add_argument("--json", action="store_true", help="print errors as JSON")


def _add_key_commands(commands: Commands, doctor: ArgumentParser) -> None:
    keys = _operator(
        commands,
        "keys",
        "make, count and change the keys that encrypt secrets in the database",
        "homeostat keys generate --encryption-keys /etc/homeostat/keys\n  homeostat keys status\n"
        "  homeostat keys rotate\n\n"
        "generate: make a file with a new key. Give every process of the service the same file, and keep a copy of it\n"
        "apart from the backups of the database.\n"
        "status: count the cells that are plain, and those encrypted with each key.\n"
        "rotate: put a new key in front of the file, and encrypt with it all that is plain or has an older key, while\n"
        "the service runs. It can be stopped at any time, and gone on with: --same-key.",
    )
    keys.add_argument("act", metavar="ACT", choices=("generate", "status", "rotate"), help="generate, status or rotate")
    keys.add_argument("--same-key", action="store_true", help="rotate without a new key, to the first one of the file")
    _add_keys(keys)
    _add_keys(doctor)


def _add_keys(command: ArgumentParser) -> None:
    _option(
        command,
        "encryption-keys",
        "",
        "keys that encrypt secrets in the database, the newest first; none: leave them plain (default: `keys` in the "
        "state directory, which is made, with SQLite; otherwise none)",
        metavar="FILE|none",
    )


def _operator(commands: Commands, name: str, summary: str, example: str) -> ArgumentParser:
    command = _command(commands, name, summary, example)
    _add_state(command)
    _option(command, "database", "", "database URL (default: SQLite in the state directory)", metavar="URL")
    command.add_argument("--json", action="store_true", help="print JSON, and nothing else")
    return command


def age_s(text: str) -> float:
    """Parse `45s`, `90m`, `12h` or `30d` into seconds."""
    found = re.fullmatch(r"(\d+)([smhd])", text)
    if found is None:
        raise ArgumentTypeError(f"{text!r} is no age: write a number with s, m, h or d, as in 30d")
    return int(found[1]) * {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}[found[2]]


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval in seconds; 0 for never, None for the service's default."""

    seconds: float | None


def interval(text: str) -> Interval:
    """Parse an age, `never` or `default`."""
    words = {"never": 0.0, "default": None}
    return Interval(words[text] if text in words else age_s(text))


def share(text: str) -> float:
    """Parse a number over 0, up to 1."""
    try:
        found = float(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is not a number") from error
    if not 0 < found <= 1:
        raise ArgumentTypeError(f"{text} is not over 0 and up to 1")
    return found


def share_or_default(text: str) -> float | None:
    """Parse a share, or `default` (None)."""
    return None if text == "default" else share(text)


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r} is not a number of 0 or more")
    return int(text)


# -- both --------------------------------------------------------------------------------------------------------------


def _command(commands: "_SubParsersAction[ArgumentParser]", name: str, summary: str, example: str) -> ArgumentParser:
    return commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example:\n  {example}",
        formatter_class=RawDescriptionHelpFormatter,
    )


def _add_state(group: Any) -> None:
    _option(group, "state-dir", default_state(), "directory of the service's state", type=Path, metavar="DIR")


def _switch(group: Any, name: str, text: str) -> None:
    """Add a flag without a value, which is on if the environment variable of the same name is not empty."""
    variable = f"HOMEOSTAT_{name.upper().replace('-', '_')}"
    on = bool(os.environ.get(variable))
    group.add_argument(f"--{name}", action="store_true", default=on, help=f"{text} [{variable}]")


def _option(group: Any, name: str, default: Any, text: str, **more: Any) -> None:
    """Add a flag whose default comes from the environment variable of the same name."""
    variable = f"HOMEOSTAT_{name.upper().replace('-', '_')}"
    shown = f" (default: {default})" if default not in (None, "") else ""
    group.add_argument(
        f"--{name}", default=os.environ.get(variable) or default, help=f"{text}{shown} [{variable}]", **more
    )
