"""`homeostat completion`: a script by which a shell completes commands, flags and files."""

from argparse import ArgumentParser, Namespace

from homeostat.cli.errors import OK
from homeostat.cli.flags import Commands, add_command
from homeostat.cli.settings_file import commands_of

SHELLS = ("bash", "zsh", "tcsh")
FILES, FOLDERS = frozenset({"FILE", "TEMPLATE"}), frozenset({"DIR"})
"""Metavars of arguments that are files, or folders."""
USE = {
    "bash": "homeostat completion bash > ~/.local/share/bash-completion/completions/homeostat",
    "zsh": "homeostat completion zsh > ~/.zfunc/_homeostat, with fpath+=~/.zfunc before compinit",
    "tcsh": "homeostat completion tcsh >> ~/.cshrc",
}


def completion(arguments: Namespace) -> int:
    """Print the script for a shell."""
    import shtab

    parser: ArgumentParser = arguments.parser()  # of all commands
    for command in (parser, *commands_of(parser)):
        for action in command._actions:
            if action.metavar in FILES:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
            elif action.metavar in FOLDERS:
                action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    print(shtab.complete(parser, shell=arguments.shell))
    return OK


def add_commands(commands: Commands) -> None:
    command = add_command(
        commands,
        completion,
        "completion",
        USE["bash"],
    )
    command.add_argument("shell", choices=SHELLS, help="; ".join(f"{name}: {use}" for name, use in USE.items()))
    command.set_defaults(json=False)
