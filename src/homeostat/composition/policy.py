"""The command `policy`, with its flags."""

import sys
from argparse import Namespace
from pathlib import Path

from homeostat.cli.errors import OK, Problem, Usage
from homeostat.cli.flags import Commands, add_command, add_json


def policy(arguments: Namespace) -> int:
    """Show the access rules, check a policy file, or print a sample of one."""
    from homeostat.api import policy_text
    from homeostat.api.access.enforcer import read_policy
    from homeostat.cli import reports

    if arguments.what == "generate":
        sys.stdout.write(policy_text.sample())
        return OK
    if arguments.what == "check" and arguments.file is None:
        raise Usage("policy check needs the FILE to check")
    try:
        rules = read_policy(arguments.file) if arguments.file is not None else {}
    except (OSError, ValueError) as error:
        raise Problem(str(error)) from error
    if arguments.what == "check":
        return reports.policy_changes(policy_text.changes(rules), as_json=arguments.json)
    return reports.policy_rules(policy_text.rows(rules), as_json=arguments.json)


def add_commands(commands: Commands) -> None:
    command = add_command(
        commands,
        policy,
        "policy",
        "homeostat policy list\n  homeostat policy generate > policy.yaml\n  homeostat policy check policy.yaml",
    )
    command.add_argument(
        "what",
        metavar="list|generate|check",
        choices=("list", "generate", "check"),
        help="list: the rules and whom they allow; generate: a file with all rules, as comments; check: what a file "
        "changes, and which of its lines is wrong",
    )
    command.add_argument("file", metavar="FILE", nargs="?", type=Path, help="policy file to check, or to list with")
    add_json(command)
