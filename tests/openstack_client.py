"""The genuine `openstack` command, to be run by `tests.forked`: to load it takes two seconds of CPU time."""

import importlib
import sys

NAME = "openstack"
LOADED = ("openstackclient.shell", "heatclient.osc.plugin", "heatclient.v1.client", "homeostat.osc.plugin")
"""Modules besides those of the commands."""
GROUP = "openstack.orchestration.v1"


def load() -> None:
    """The commands of stacks too, and the list of all commands, which is read from the metadata of all packages."""
    sys.argv[0] = NAME  # from which the client takes its name once
    for name in LOADED:
        importlib.import_module(name)
    from stevedore import ExtensionManager

    ExtensionManager(GROUP)


def main(_program: str, arguments: list[str]) -> str | int | None:
    from openstackclient.shell import main as openstack

    code: str | int | None = openstack(arguments)
    return code
