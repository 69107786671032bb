"""The entry point: the `homeostat` command with all its subcommands."""

import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence

from homeostat.cli import (
    backup,
    cluster_import,
    completion,
    graph,
    health_findings,
    history,
    operator_commands,
    plan,
    rollouts,
    settings_file,
    stack_actions,
    stack_commands,
)
from homeostat.cli.errors import Usage
from homeostat.cli.output import report
from homeostat.cli.running import run
from homeostat.composition import doctor, policy, service
from homeostat.composition.garbage import collect_rarely

# Libraries of OpenStack load eventlet if it is installed, which takes a second and prints warnings. This service uses
# threads instead.
sys.modules.setdefault("eventlet", None)  # type: ignore[arg-type]

DESCRIPTION = "Convergent, self-healing orchestration that speaks the OpenStack Orchestration API."
EPILOG = """\
first steps:
  homeostat up examples/web-tier.yaml           create the stack, and a service if none runs; watch it come up
  homeostat show web-tier                       its resources and outputs
  homeostat up examples/web-tier.yaml -P message=Hello      change it
  homeostat explain web-tier                    which resources wait, and why
  homeostat down web-tier                       delete it

exit codes: 0 done, 1 the operation failed, 2 wrong usage, 3 no service answers;
4 from `plan --detailed-exit-code`: the plan has changes.
Each flag shown with a [HOMEOSTAT_…] name can also be set by that environment variable, and in a settings file:
--config FILE, HOMEOSTAT_CONFIG, or /etc/homeostat/homeostat.toml.
See `homeostat COMMAND --help` for each command."""
GROUPS = (
    stack_commands,
    graph,
    plan,
    stack_actions,
    rollouts,
    health_findings,
    history,
    service,
    doctor,
    operator_commands,
    backup,
    cluster_import,
    policy,
    completion,
)
"""Modules with commands, in the order of the help; each declares the flags of its commands."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code (see `cli.errors`)."""
    collect_rarely()
    root = parser()
    try:
        if settings_file.apply(root, sys.argv[1:] if argv is None else argv, os.environ):
            root = parser()  # its defaults come from the environment
    except Usage as error:
        report(error, as_json=False)
        return error.code
    return run(root, argv)


def parser() -> ArgumentParser:
    root = ArgumentParser(
        "homeostat", description=DESCRIPTION, epilog=EPILOG, formatter_class=RawDescriptionHelpFormatter
    )
    commands = root.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for group in GROUPS:
        group.add_commands(commands)
    root.set_defaults(parser=root)
    return root


if __name__ == "__main__":
    sys.exit(main())
