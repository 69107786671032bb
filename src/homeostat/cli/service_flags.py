"""The flags of `serve`, `api` and `worker`, by subject; each flag is a setting of `ServiceSettings`."""

from argparse import ArgumentParser
from pathlib import Path

from homeostat.cli.flags import (
    Commands,
    Run,
    add_command,
    add_database,
    add_encryption_keys,
    add_list,
    add_option,
    add_plugins,
    add_state_directory,
    add_switch,
    age_s,
    vantage_name,
)
from homeostat.cli.settings import ACCESS_MODES, CLOUDS, INTERFACES, LOG_LEVELS, PORT, SQL_BOARD, ServiceSettings
from homeostat.model.health_policy import DEFAULT_VANTAGE
from homeostat.switch_flags import share


def add_service_command(commands: Commands, run: Run, name: str, example: str) -> ArgumentParser:
    """Add a command that runs processes of a service."""
    command = add_command(commands, run, name, example)
    add_service_flags(command)
    return command


def add_service_flags(command: ArgumentParser) -> None:
    command.set_defaults(workers=1, apis=1, json=False)
    _add_storage(command)
    add_openstack(command)
    _add_listening(command)
    _add_proxies(command)
    _add_access(command)
    _add_limits_of_requests(command)
    _add_limits_of_stacks(command)
    _add_convergence(command)
    _add_outside(command)
    _add_observability(command)


def default_settings(state: Path) -> ServiceSettings:
    """Return the settings of a service in this state directory, with further settings from `HOMEOSTAT_*` variables."""
    parser = ArgumentParser()
    add_service_flags(parser)
    return ServiceSettings.of(parser.parse_args(["--state-dir", str(state)]))


def _add_storage(command: ArgumentParser) -> None:
    add_state_directory(command)
    add_database(command)
    add_encryption_keys(command)
    board = "where workers find their jobs: sql for the database itself, or redis://HOST:PORT/DB, rediss://, unix://"
    add_option(command, "board", SQL_BOARD, board, metavar="sql|URL")
    add_option(
        command,
        "cloud",
        "local",
        "where resources are created: on this machine, in an OpenStack, or in memory",
        choices=CLOUDS,
    )


def add_openstack(command: ArgumentParser) -> None:
    """Add flags for OpenStack."""
    add_option(
        command,
        "os-cloud",
        "",
        "entry of clouds.yaml whose login creates the things of all projects in --cloud openstack; not for --access "
        "keystone, where the owners of stacks do",
        metavar="NAME",
    )
    add_option(command, "os-region", "", "region of OpenStack's catalogue (default: the only one)", metavar="NAME")
    add_option(command, "os-interface", "public", "interface of OpenStack's endpoints", choices=INTERFACES)
    add_option(
        command,
        "os-timeout",
        60.0,
        "seconds that a request to OpenStack may take; after that, its effect is checked before it is sent again",
        type=float,
        metavar="SECONDS",
    )
    add_option(
        command, "os-connections", 16, "requests that one process sends to OpenStack at once", type=int, metavar="COUNT"
    )
    _add_message_buses(command)
    add_option(
        command,
        "os-requests-per-second",
        "",
        "requests a second that all processes together send to each of OpenStack's services, and how many at once; "
        "with their types for some of them, as in compute=20,network=50:100 (default: no limit)",
        metavar="[SERVICE=]RATE[:BURST],...",
    )


def _add_message_buses(command: ArgumentParser) -> None:
    add_list(
        command,
        "os-notifications",
        "message bus of OpenStack's services, rabbit://USER:PASSWORD@HOST:PORT/VHOST: reported changes are observed at "
        "once; may be repeated; better in the variable, where `ps` does not show the password",
        metavar="URL",
    )
    add_list(
        command,
        "os-notification-topic",
        "where the services report; may be repeated (default: the usual ones of Nova, Neutron, Cinder and Octavia)",
        metavar="EXCHANGE/TOPIC",
    )
    add_option(
        command,
        "os-notification-pool",
        "homeostat",
        "queue on the message bus; two services on one bus need different ones",
        metavar="NAME",
    )
    add_option(
        command,
        "stack-notifications",
        "",
        "message bus for this service's notifications about stacks, the same as Heat's (orchestration.*), "
        "rabbit://USER:PASSWORD@HOST:PORT/VHOST; better in the variable, where `ps` does not show the password",
        metavar="URL",
    )
    add_option(
        command,
        "stack-notification-topic",
        "heat/notifications",
        "where these notifications go",
        metavar="EXCHANGE/TOPIC",
    )


def _add_listening(command: ArgumentParser) -> None:
    add_option(command, "host", "127.0.0.1", "address to listen on", metavar="ADDRESS")
    add_option(command, "port", PORT, "port to listen on, 0 for any free one", type=int, metavar="PORT")
    add_option(
        command,
        "public-url",
        "",
        "URL of the API for links in its answers, and for servers that send signals (default: where it listens; links "
        "follow the name that a client uses if it is one of this machine)",
        metavar="URL",
    )


def _add_proxies(command: ArgumentParser) -> None:
    add_list(
        command,
        "trusted-proxy",
        "a proxy in front whose X-Forwarded-For and X-Forwarded-Proto are trusted: its clients have shares by their "
        "own addresses, not by the proxy's; may be repeated",
        metavar="ADDRESS|NETWORK",
    )


def add_access_mode(command: ArgumentParser) -> None:
    add_option(
        command,
        "access",
        "none",
        "who may use the API: the user who runs it, users with passwords, or users of Keystone",
        choices=ACCESS_MODES,
    )


def add_keystone_config(command: ArgumentParser) -> None:
    add_option(
        command,
        "keystone-config",
        None,
        "how --access keystone reaches Keystone: an ini file with the section [keystone_authtoken]",
        type=Path,
        metavar="FILE",
    )


def _add_access(command: ArgumentParser) -> None:
    add_access_mode(command)
    add_switch(command, "all-local-users", "--access none lets in every user of this machine")
    add_switch(
        command,
        "users-run-code-as-me",
        "let other users use the local cloud, although its servers are processes of the user who runs the service: "
        "every user of the API can do what that user can",
    )
    add_option(command, "htpasswd", None, "users of --access basic (bcrypt)", type=Path, metavar="FILE")
    add_keystone_config(command)
    add_option(
        command,
        "policy-file",
        None,
        "access rules that differ from those that `homeostat policy list` shows (YAML)",
        type=Path,
        metavar="FILE",
    )
    add_switch(
        command,
        "old-policy-defaults",
        "also allow the rights from before the roles reader and member: everything to everyone but stack users",
    )


def _add_limits_of_requests(command: ArgumentParser) -> None:
    add_option(
        command,
        "max-body",
        1_048_576,
        "largest body of a request, in bytes; a document to adopt has about 250 for each resource",
        type=int,
        metavar="BYTES",
    )
    add_option(
        command,
        "rate-limit",
        "",
        "requests a second of one caller in one project, per API process, and how many at once (default: no limit)",
        metavar="RATE[:BURST]",
    )
    add_option(
        command,
        "heavy-requests",
        4,
        "requests that check templates (create, update, preview, validate) at the same time, per API process; one "
        "project gets at most half of these places, further requests wait",
        type=int,
        metavar="N",
    )
    add_option(command, "previewed-max", 10_000, "resources that a preview lists", type=int, metavar="N")
    add_switch(command, "no-adopt", "refuse to adopt stacks")
    add_switch(command, "no-abandon", "refuse to export and to abandon stacks")


def _add_limits_of_stacks(command: ArgumentParser) -> None:
    add_option(
        command,
        "stacks-max",
        512,
        "stacks of a project, nested stacks not counted; no limit for admins",
        type=int,
        metavar="N",
    )
    add_option(
        command,
        "resources-max",
        1_000_000,
        "resources of a stack, nested stacks included",
        type=int,
        metavar="N",
    )
    add_option(
        command,
        "expanded-max",
        50_000,
        "resources of the distinct nested templates of a stack",
        type=int,
        metavar="N",
    )
    add_option(command, "depth-max", 5, "levels of nested stacks", type=int, metavar="N")
    add_option(command, "snapshots-max", 32, "snapshots of a stack", type=int, metavar="N")
    add_option(
        command, "health-interval-min", 60, "shortest interval of health checks, in seconds", type=int, metavar="N"
    )
    add_list(
        command, "hidden-tag", "list stacks with this tag only on request (`--hidden`); may be repeated", metavar="TAG"
    )


def _add_convergence(command: ArgumentParser) -> None:
    add_option(
        command,
        "vantage",
        DEFAULT_VANTAGE,
        "name of the place of these workers: health policies may give a weight to each place that checks URLs",
        type=vantage_name,
        metavar="NAME",
    )
    add_option(
        command,
        "heal-share",
        0.4,
        "share of a stack's resources that are healed at a time, unless the stack sets its own",
        type=share,
        metavar="SHARE",
    )
    add_option(
        command,
        "forget-workers-after",
        "10m",
        "time for which a dead worker stays registered, and in the report of `homeostat doctor`",
        type=age_s,
        metavar="AGE",
    )


def _add_outside(command: ArgumentParser) -> None:
    """Add flags for further services, files of the operator, and plug-ins."""
    add_list(
        command,
        "region",
        "another service in which OS::Heat::Stack may create stacks; may be repeated; `default` is this service's own "
        "API",
        metavar="NAME=URL",
    )
    add_option(
        command,
        "region-logins",
        None,
        "lines REGION USER:PASSWORD [PROJECT] for regions that need a password",
        type=Path,
        metavar="FILE",
    )
    add_list(
        command,
        "fetch-from",
        "a host, address or network outside the public internet from which templates may be fetched, and to which "
        "event sinks may post; may be repeated",
        metavar="HOST|NETWORK",
    )
    add_list(
        command,
        "environment-file",
        "an environment whose resource_registry and parameter_defaults apply to all stacks; may be repeated, later "
        "ones win",
        metavar="FILE",
    )
    add_plugins(command)


def _add_observability(command: ArgumentParser) -> None:
    add_option(
        command,
        "drain-file",
        None,
        "while this file exists, /healthcheck answers 503, so that load balancers send no new requests",
        type=Path,
        metavar="FILE",
    )
    add_switch(command, "metrics", "serve metrics at /metrics of the API, for its users")
    add_option(
        command, "metrics-port", None, "port of a worker's metrics, 0 for any free one", type=int, metavar="PORT"
    )
    add_option(command, "metrics-host", "127.0.0.1", "address of --metrics-port, open to all", metavar="ADDRESS")
    add_switch(command, "traces", "send traces over OTLP; OTEL_* variables set where to and how")
    add_option(command, "log-level", "info", "least severe messages to log", choices=LOG_LEVELS)
    add_switch(command, "log-json", "log JSON, one object a line")
