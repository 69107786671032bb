"""What the `openstack` command asks of a plug-in: a name, versions, options, a client."""

from argparse import ArgumentParser
from typing import Any

from keystoneauth1.adapter import Adapter
from osc_lib import utils

from homeostat.osc.service import Service

API_NAME = "convergence"
"""Of this plug-in; commands are in the group `openstack.convergence.v1`. The service in the catalogue is another word:
`orchestration`."""
API_VERSION_OPTION = "os_convergence_api_version"
DEFAULT_API_VERSION = "1"
API_VERSIONS = ("1",)
SERVICE_TYPE = "orchestration"


def make_client(manager: Any) -> Service:
    """For the commands, with the session of the `openstack` command: its login, endpoint, certificates, time-outs."""
    adapter = Adapter(
        manager.session,
        service_type=SERVICE_TYPE,
        region_name=manager.region_name,
        interface=manager.interface,
        raise_exc=False,
    )
    return Service(adapter)


def build_option_parser(parser: ArgumentParser) -> ArgumentParser:
    name = f"--{API_VERSION_OPTION.replace('_', '-')}"
    environment = API_VERSION_OPTION.upper()
    parser.add_argument(
        name,
        metavar="<convergence-api-version>",
        default=utils.env(environment, default=DEFAULT_API_VERSION),
        help=f"Version of the API that locks and converges stacks, default={DEFAULT_API_VERSION} (Env: {environment})",
    )
    return parser
