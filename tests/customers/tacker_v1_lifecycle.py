"""The life of one virtual network function under Tacker's driver for version 1 of its API, without Tacker's server and
its database; run in `.tacker`.

Reads what it needs as a line of JSON from its input, prints a line of JSON after each operation, and goes on once it
has read another line.
"""

import contextlib
import copy
import json
import os
import sys
import types
from pathlib import Path
from typing import Any
from unittest import mock

os.environ.setdefault("EVENTLET_NO_GREENDNS", "yes")

import yaml
from oslo_config import cfg
from oslo_utils import uuidutils
from tacker import context, objects
from tacker.common.utils import convert_camelcase_to_snakecase
from tacker.vnflcm import utils as lcm_utils
from tacker.vnfm.infra_drivers.openstack import heat_client, openstack

FLAVOUR, GROUP, SERVER = "simple", "VDU1_scale", "OS::Nova::Server"
USER_DATA = {
    "lcm-operation-user-data": "./UserData/lcm_user_data.py",
    "lcm-operation-user-data-class": "SampleUserData",
}
ASK_S = 1
ASK_TIMES = 600
REPORTS = sys.stdout
"""The driver prints something, too: that goes elsewhere."""
NOWHERE = None
"""For the plug-in of Tacker's server, of which the driver asks nothing."""


class Function:
    """A virtual network function made from a sample package.

    package — its directory; access — by which Tacker logs in.
    """

    def __init__(self, package: Path, access: dict[str, str]) -> None:
        self._package, self._access = package, access
        self._context = context.get_admin_context()
        self._driver = openstack.OpenStack()
        self._vim = objects.VimConnectionInfo(id=uuidutils.generate_uuid(), access_info=access)
        self._description = yaml.safe_load((package / "Definitions" / "helloworld3_df_simple.yaml").read_text())
        id, vnfd_id = uuidutils.generate_uuid(), uuidutils.generate_uuid()
        self._vnf: dict[str, Any] = {
            "id": id,
            "name": f"function-{id}",
            "vnfd_id": vnfd_id,
            "policy_name": GROUP,
            "attributes": {},
            "vnfd": {"attributes": {f"vnfd_{FLAVOUR}": yaml.safe_dump(self._description)}},
            "before_error_point": 0,
        }
        self._info = objects.InstantiatedVnfInfo(
            flavour_id=FLAVOUR, vnfc_resource_info=[], additional_params=dict(USER_DATA), scale_status=[]
        )
        self._instance = objects.VnfInstance(
            self._context, id=id, vnfd_id=vnfd_id, instantiated_vnf_info=self._info, vnf_metadata={}
        )

    @property
    def _stack(self) -> str:
        return str(self._info.instance_id)

    def without_database(self) -> dict[Any, Any]:
        """What the driver reads of Tacker's database: what is asked -> the answer."""
        plugin = types.SimpleNamespace(get_vnf=lambda *_: self._vnf)
        done = types.SimpleNamespace(error_point=0)
        return {
            (lcm_utils, "_get_vnf_package_id"): lambda *_: self._package.name,
            (lcm_utils, "get_vnfd_dict"): lambda *_: copy.deepcopy(self._description),
            (openstack.manager.TackerManager, "get_service_plugins"): lambda *_: {"VNFM": plugin},
            (objects.VnfLcmOpOcc, "get_by_vnf_instance_id"): lambda *_: done,
        }

    def instantiate(self, links: list[Any]) -> None:
        body = convert_camelcase_to_snakecase({"flavourId": FLAVOUR, "extVirtualLinks": links})
        request = objects.InstantiateVnfRequest.obj_from_primitive(
            {**body, "additional_params": dict(USER_DATA)}, self._context
        )
        self._info.instance_id = self._vnf["instance_id"] = self._driver.instantiate_vnf(
            self._context, self._instance, self._vnf, self._vim, request, None, NOWHERE, str(self._package)
        )
        self._driver.create_wait(NOWHERE, self._context, self._vnf, self._stack, self._access)
        self._info.scale_status = self._vnf["scale_status"]

    def scale(self, action: str) -> None:
        """Send a signal to the policy of the group."""
        policy = {"instance_id": self._stack, "name": GROUP, "vnf": self._vnf, "action": action}
        last = self._driver.scale(self._context, NOWHERE, self._access, policy, None)
        self._driver.scale_wait(self._context, NOWHERE, self._access, policy, None, last)
        self._levels(1 if action == "out" else -1)

    def scale_in_newest(self) -> None:
        """Mark the newest member, and make the group smaller by an update."""
        _, names, group, _ = self._driver.get_scale_in_ids(
            NOWHERE, self._context, self._vnf, "True", self._access, None, 1
        )
        request = types.SimpleNamespace(aspect_id=GROUP, number_of_steps=1)
        self._driver.scale_in_reverse(
            *(self._context, NOWHERE, self._access, self._vnf, request, None, names, group, self._instance)
        )
        self._driver.scale_update_wait(self._context, NOWHERE, self._access, self._vnf, None)
        self._levels(-1)

    def _levels(self, steps: int) -> None:
        for each in self._info.scale_status:
            if each.aspect_id == GROUP:
                each.scale_level += steps

    def heal(self, ids: list[str]) -> None:
        """Servers with these ids; none given: all."""
        self._info.vnfc_resource_info = [
            objects.VnfcResourceInfo(
                id=server,
                vdu_id=name,
                compute_resource=objects.ResourceHandle(resource_id=server, vim_level_resource_type=SERVER),
                storage_resource_ids=[],
                vnfc_cp_info=[],
                metadata={"stack_id": stack},
            )
            for server, (name, stack) in self._servers().items()
        ]
        request = objects.HealVnfRequest(vnfc_instance_id=ids, cause="tests", additional_params={})
        self._driver.heal_vnf(self._context, self._instance, self._vim, request)
        self._driver.heal_vnf_wait(self._context, self._instance, self._vim, request)
        self._driver.post_heal_vnf(self._context, self._instance, self._vim, request)

    def connect(self, links: list[Any]) -> None:
        body = convert_camelcase_to_snakecase({"extVirtualLinks": links})
        request = objects.ChangeExtConnRequest.obj_from_primitive(body, self._context)
        self._driver.change_ext_conn_vnf(self._context, self._instance, self._vnf, self._vim, request)
        self._driver.change_ext_conn_vnf_wait(self._context, self._instance, self._vim)

    def terminate(self) -> None:
        self._driver.delete(NOWHERE, self._context, self._stack, self._access)
        self._driver.delete_wait(NOWHERE, self._context, self._stack, self._access)

    def _servers(self) -> dict[str, tuple[str, str]]:
        """Id of each server, as the stacks tell: name of its resource, and id of the stack that this is in."""
        client = heat_client.HeatClient(self._access)
        return {
            each["physical_resource_id"]: (name, stack)
            for stack, resources in self._driver._get_stack_resources(self._stack, client).items()
            for name, each in resources.items()
            if isinstance(each, dict) and each["resource_type"] == SERVER
        }

    def of(self, vdu: str) -> list[str]:
        return [server for server, (name, _) in self._servers().items() if name == vdu]

    def report(self, reported: str, ended: bool = False) -> None:
        """Print what the function consists of now."""
        parts = {} if ended else {server: name for server, (name, _) in self._servers().items()}
        print(json.dumps({"reported": reported, "servers": parts}), file=REPORTS, flush=True)
        sys.stdin.readline()


def link(network: str, points: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A network outside, and how points of the function are connected to it: each with its addresses."""
    return {
        "id": uuidutils.generate_uuid(),
        "resourceId": network,
        "extCps": [
            {
                "cpdId": point,
                "cpConfig": [
                    {
                        "cpProtocolData": [
                            {
                                "layerProtocol": "IP_OVER_ETHERNET",
                                "ipOverEthernet": {"ipAddresses": [{"type": "IPV4", **addresses}]},
                            }
                        ]
                    }
                ],
            }
            for point, addresses in points.items()
        ],
    }


def main() -> None:
    given = json.loads(sys.stdin.readline())
    package, networks, subnets = Path(given["package"]), given["networks"], given["subnets"]
    cfg.CONF([], project="tacker")
    cfg.CONF.set_override("vnf_package_csar_path", str(package.parent), "vnf_package")
    cfg.CONF.set_override("stack_retry_wait", ASK_S, "openstack_vim")
    cfg.CONF.set_override("stack_retries", ASK_TIMES, "openstack_vim")
    objects.register_all()
    function = Function(package, given["access"])
    dynamic: dict[str, Any] = {"numDynamicAddresses": 1}
    plain = link(networks["net0"], {"VDU1_CP1": dynamic, "VDU2_CP1": dynamic})
    fixed = {"fixedAddresses": [given["address"]], "subnetId": subnets["net1"]}
    addressed = link(networks["net1"], {"VDU1_CP2": {**dynamic, "subnetId": subnets["net1"]}, "VDU2_CP2": fixed})
    for (module, name), answer in function.without_database().items():
        mock.patch.object(module, name, answer).start()
    function.instantiate([plain, addressed])
    function.report("instantiated")
    function.scale("out")
    function.report("scaled out")
    function.scale("in")
    function.report("scaled in")
    function.scale("out")
    function.report("scaled out again")
    function.scale_in_newest()
    function.report("newest scaled in")
    (healed,) = function.of("VDU1")
    function.heal([healed])
    function.report(f"healed in place of {healed}")
    function.connect([link(networks["net1"], {"VDU1_CP1": dynamic})])
    function.report("connected elsewhere")
    function.heal([])
    function.report("all healed")
    function.terminate()
    function.report("terminated", ended=True)


with contextlib.redirect_stdout(sys.stderr):
    main()
