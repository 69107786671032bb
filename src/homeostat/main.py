"""The entry point: the `homeostat` command with all its subcommands."""

import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from importlib import import_module

from homeostat.cli import settings_file
from homeostat.cli.command_index import INDEX
from homeostat.cli.errors import Usage
from homeostat.cli.running import run
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


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code (see `cli.errors`)."""
    collect_rarely()
    words = sys.argv[1:] if argv is None else argv
    command = next((word for word in words if not word.startswith("-")), "")
    try:
        settings_file.apply(map(parser, (command, None)), words, os.environ)
    except Usage as error:
        from homeostat.cli.output import report

        report(error, as_json=False)
        return error.code
    return run(parser(command), words)


def parser(command: str | None = None) -> ArgumentParser:
    """Return the parser of all commands, or of one command, which only lists the others."""
    root = ArgumentParser(
        "homeostat", description=DESCRIPTION, epilog=EPILOG, formatter_class=RawDescriptionHelpFormatter
    )
    commands = root.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module, summaries in INDEX.items():
        if command is None or command in summaries:
            import_module(f"homeostat.{module}").add_commands(commands)
        else:
            for name, summary in summaries.items():
                commands.add_parser(name, help=summary)
    root.set_defaults(parser=parser)
    return root


if __name__ == "__main__":
    sys.exit(main())
