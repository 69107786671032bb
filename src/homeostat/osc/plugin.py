"""The interface of a plug-in of the `openstack` command: name, versions, options, client."""

from argparse import ArgumentParser
from typing import Any

from keystoneauth1.adapter import Adapter
from osc_lib import utils

from homeostat.osc.service import Service

API_NAME = "convergence"
"""Name of this plug-in: its commands are in the group `openstack.convergence.v1`.

The service's type in the catalogue is a different word, `orchestration`.
"""
API_VERSION_OPTION = "os_convergence_api_version"
DEFAULT_API_VERSION = "1"
API_VERSIONS = ("1",)
SERVICE_TYPE = "orchestration"


def make_client(manager: Any) -> Service:
    """Return the client for the commands, on the session (login, endpoint, certificates, time-outs) of the tool."""
    adapter = Adapter(
        manager.session,
        service_type=SERVICE_TYPE,
        region_name=manager.region_name,
        interface=manager.interface,
        raise_exc=False,
    )
    return Service(adapter)


def build_option_parser(parser: ArgumentParser) -> ArgumentParser:
    """Add the option for the version of the API."""
    name = f"--{API_VERSION_OPTION.replace('_', '-')}"
    environment = API_VERSION_OPTION.upper()
    parser.add_argument(
        name,
        metavar="<convergence-api-version>",
        default=utils.env(environment, default=DEFAULT_API_VERSION),
        help=f"Version of the API that locks and converges stacks, default={DEFAULT_API_VERSION} (Env: {environment})",
    )
    return parser
