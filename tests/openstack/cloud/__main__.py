"""The command: `python -m tests.openstack.cloud up`."""

import argparse
import dataclasses
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from tests.openstack.cloud import configuration, faults, install, proc, settings
from tests.openstack.cloud.cloud import Cloud, open_cloud, working
from tests.openstack.cloud.errors import Failure
from tests.openstack.cloud.services import OPTIONAL
from tests.openstack.cloud.settings import Settings

ROOT = Path(__file__).parents[3]
DEFAULT = ROOT / ".openstack"
VARIABLE = "HOMEOSTAT_OPENSTACK"


def main() -> int:
    args = _parser().parse_args()
    act: Callable[[argparse.Namespace], int | None] = args.act
    try:
        return act(args) or 0
    except Failure as failure:
        print(f"openstack of the tests: {failure}", file=sys.stderr)
        return 1


def _install(args: argparse.Namespace) -> None:
    with working(args.dir):
        cloud = open_cloud(args.dir, _chosen(args))
        install.install(cloud.site, cloud.services)


def _up(args: argparse.Namespace) -> None:
    with working(args.dir):
        before, chosen = open_cloud(args.dir), _chosen(args)
        now = before.site.settings
        if before.processes.any_run():
            # Services may be added to a running cloud; none is taken away.
            chosen = dataclasses.replace(chosen, services=tuple(dict.fromkeys((*now.services, *chosen.services))))
            if chosen != dataclasses.replace(now, services=chosen.services):
                raise Failure("it runs with other options: bring it down first")
        open_cloud(args.dir, chosen).up()


def _chosen(args: argparse.Namespace) -> Settings:
    given = {field.name: getattr(args, field.name, None) for field in dataclasses.fields(Settings)}
    return dataclasses.replace(
        settings.read(args.dir), **{name: value for name, value in given.items() if value is not None}
    )


def _down(args: argparse.Namespace) -> None:
    with working(args.dir):
        open_cloud(args.dir).down(args.wipe, args.purge)


def _status(args: argparse.Namespace) -> int:
    processes, total, stopped = _existing(args).processes, 0, 0
    for name in processes.commands:
        pid = processes.pid(name)
        members = proc.members(pid) if pid else []
        memory = sum(proc.resident_mib(each) for each in members)
        total += memory
        stopped += not pid
        state = "running" if pid else "STOPPED"
        print(f"{name:18} {state:8} pid {pid or '-':<8} {len(members)} process(es) {memory:5} MiB")
    print(f"total {total} MiB resident")
    return 1 if stopped else 0


def _env(args: argparse.Namespace) -> None:
    site = _existing(args).site
    print(f"export OS_CLIENT_CONFIG_FILE={site.clouds_yaml}")
    print(f"export OS_CLOUD={configuration.USER}")
    print(f"export PATH={site.venv / 'bin'}:$PATH")
    # The topics are those that it listens to by default: notifications, versioned_notifications.
    print(f"export HOMEOSTAT_OS_NOTIFICATIONS={site.transport_url}")


def _start(args: argparse.Namespace) -> None:
    with working(args.dir):
        _existing(args).start(args.process)


def _stop(args: argparse.Namespace) -> None:
    by = signal.SIGKILL if args.command == "kill" else signal.SIGTERM
    with working(args.dir):
        _existing(args).stop(args.process, by)


def _vm(args: argparse.Namespace) -> None:
    faults.change_guest(_existing(args).site, args.what, args.uuid)


def _member(args: argparse.Namespace) -> None:
    faults.change_member(_existing(args).site, args.member, args.what)


def _event(args: argparse.Namespace) -> None:
    faults.send_event(_existing(args).site, args.type, args.trait)


def _fault(args: argparse.Namespace) -> None:
    site = _existing(args).site
    if args.what == "add":
        print(faults.add(site, faults.parsed(args.rule)))
    elif args.what == "clear":
        faults.clear(site)
    else:
        print(json.dumps(faults.read(site), indent=2))


def _existing(args: argparse.Namespace) -> Cloud:
    if not (args.dir / settings.FILE).exists():
        raise Failure(f"no cloud in {args.dir}: bring one up first")
    return open_cloud(args.dir)


def _services(text: str) -> tuple[str, ...]:
    names = text.split(",")
    for name in names:
        if name not in OPTIONAL:
            raise argparse.ArgumentTypeError(f"no service {name}; there are: {', '.join(OPTIONAL)}")
    return tuple(name for name in OPTIONAL if name in names)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.openstack.cloud", description="a small real OpenStack")
    known = os.environ.get(VARIABLE)
    parser.add_argument(
        "--dir",
        type=lambda text: Path(text).absolute(),
        default=Path(known).absolute() if known else DEFAULT,
        help=f"where it is (default: ${VARIABLE}, or {DEFAULT.name} of the project)",
    )
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name: str, act: Callable[[argparse.Namespace], int | None], text: str) -> argparse.ArgumentParser:
        found: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
        found.set_defaults(act=act)
        return found

    _add_services(command("install", _install, "install what is missing"))
    _add_up(command("up", _up, "install and start what is missing"))
    down = command("down", _down, "stop everything")
    down.add_argument("--wipe", action="store_true", help="and remove all data, but not the installation")
    down.add_argument("--purge", action="store_true", help="and remove the whole directory")
    command("status", _status, "processes and memory; exit 1 if any is down")
    command("env", _env, "print variables for a shell to eval")
    command("start", _start, "start a process").add_argument("process")
    command("stop", _stop, "stop a process").add_argument("process")
    command("kill", _stop, "kill a process (SIGKILL)").add_argument("process")
    vm = command("vm", _vm, "change a guest behind Nova's back")
    vm.add_argument("what", choices=sorted(faults.GUESTS))
    vm.add_argument("uuid", help="of the server")
    member = command("member", _member, "say how members of Octavia's pools are")
    member.add_argument("member", metavar="ID-or-ADDRESS")
    member.add_argument("what", choices=sorted(faults.MEMBERS))
    event = command("event", _event, "send an event to Aodh: compute.instance.update project_id=ID state=error")
    event.add_argument("type")
    event.add_argument("trait", nargs="*", metavar="trait=value")
    fault = command("fault", _fault, "inject faults: add kind=http service=nova-api path=/servers status=503 times=2")
    fault.add_argument("what", choices=("add", "list", "clear"))
    fault.add_argument("rule", nargs="*", metavar="key=value")
    return parser


def _add_services(command: argparse.ArgumentParser) -> None:
    which = command.add_mutually_exclusive_group()
    names = ", ".join(OPTIONAL)
    which.add_argument("--with", dest="services", metavar="SERVICE,…", type=_services, help=f"optional ones: {names}")
    which.add_argument("--all", dest="services", action="store_const", const=tuple(OPTIONAL), help="all of them")


def _add_up(command: argparse.ArgumentParser) -> None:
    default = Settings()
    _add_services(command)
    command.add_argument("--port-base", type=int, help=f"the first port ({default.port_base})")
    command.add_argument("--computes", type=int, help=f"how many hosts have a nova-compute ({default.computes})")
    command.add_argument(
        "--soft-delete", type=int, metavar="SECONDS", help="how long deleted servers are SOFT_DELETED (0: not at all)"
    )
    command.add_argument("--name", help=f"of RabbitMQ's vhost and MariaDB's account ({default.name})")
    command.add_argument("--debug", action="store_true", default=None)


if __name__ == "__main__":
    sys.exit(main())
