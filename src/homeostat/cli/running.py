"""Runs a command, and turns exceptions into messages and exit codes."""

import signal
from argparse import ArgumentParser
from collections.abc import Sequence

from homeostat.cli.errors import Problem


def run(parser: ArgumentParser, argv: Sequence[str] | None = None) -> int:
    """Parse a command and run it. Exit with code 2 and a message if its flags are invalid.

    Returns:
        The exit code (see `errors`).
    """
    arguments = parser.parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except Problem as problem:
        from homeostat.cli.output import report

        report(problem, as_json=arguments.json)
        return problem.code
    except KeyboardInterrupt:
        from homeostat.cli.output import report_interrupt

        report_interrupt(arguments)
        return 128 + signal.SIGINT
