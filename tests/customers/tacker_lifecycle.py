"""The life of one virtual network function under Tacker's own driver, without Tacker's server; run in `.tacker`.

Reads what it needs as JSON from its input, and prints a line of JSON after each operation.
"""

import json
import os
import sys
from typing import Any

os.environ.setdefault("EVENTLET_NO_GREENDNS", "yes")

from oslo_utils import uuidutils
from tacker.sol_refactored import objects
from tacker.sol_refactored.common import config, vnfd_utils
from tacker.sol_refactored.conductor import vnflcm_driver_v2
from tacker.sol_refactored.infra_drivers.openstack import heat_utils, openstack
from tacker.tests.functional.sol_v2_common import paramgen

VNFD_ID = uuidutils.generate_uuid()
IMAGE = "mini"
ASK_S = 1
REQUESTS = {
    "INSTANTIATE": "InstantiateVnfRequest",
    "SCALE": "ScaleVnfRequest",
    "HEAL": "HealVnfRequest",
    "CHANGE_EXT_CONN": "ChangeExtVnfConnectivityRequest",
    "TERMINATE": "TerminateVnfRequest",
}


class Operation:
    """What the driver of the conductor reads of an operation."""

    def __init__(self, name: str, request: Any) -> None:
        self.operation, self.operationParams = name, request


class Function:
    """A virtual network function made from a sample package."""

    def __init__(self, package: str, access: Any) -> None:
        self._conductor, self._driver = vnflcm_driver_v2.VnfLcmDriverV2(), openstack.Openstack()
        self._vnfd = vnfd_utils.Vnfd(VNFD_ID)
        self._vnfd.init_from_csar_dir(package)
        self.instance = objects.VnfInstanceV2.from_dict(
            {
                "id": uuidutils.generate_uuid(),
                "vnfdId": VNFD_ID,
                "vnfProvider": "tests",
                "vnfProductName": "tests",
                "vnfSoftwareVersion": "1",
                "vnfdVersion": "1",
                "vimConnectionInfo": access,
                "instantiationState": "NOT_INSTANTIATED",
            }
        )

    def do(self, name: str, body: Any, reported: str) -> None:
        """Carry an operation out, as Tacker's conductor does, and print what the function consists of then."""
        request = getattr(objects, REQUESTS[name]).from_dict(body)
        before = self.instance.obj_clone()
        asked = objects.GrantRequestV1(
            vnfInstanceId=self.instance.id,
            vnfLcmOpOccId=uuidutils.generate_uuid(),
            vnfdId=VNFD_ID,
            operation=name,
            isAutomaticInvocation=False,
        )
        getattr(self._conductor, f"{name.lower()}_grant")(asked, request, self.instance, self._vnfd)
        grant = self._granted(asked, request.flavourId if name == "INSTANTIATE" else self._info.flavourId)
        getattr(self._driver, name.lower())(request, self.instance, asked, grant, self._vnfd)
        if name != "TERMINATE":
            self._conductor._make_inst_info_common(Operation(name, request), before, self.instance, self._vnfd)
        parts = [] if name == "TERMINATE" else self._info.vnfcResourceInfo
        servers = {each.computeResource.resourceId: each.vduId for each in parts}
        print(json.dumps({"reported": reported, "servers": servers}), flush=True)

    def parts(self, vdu: str) -> list[str]:
        """Return the ids of the parts that run one kind of server, the newest first."""
        return [each.id for each in self._info.vnfcInfo if each.vduId == vdu]

    @property
    def _info(self) -> Any:
        return self.instance.instantiatedVnfInfo

    def _granted(self, asked: Any, flavour: str) -> Any:
        grant = objects.GrantV1(
            id=uuidutils.generate_uuid(), vnfInstanceId=self.instance.id, vnfLcmOpOccId=asked.vnfLcmOpOccId
        )
        if asked.obj_attr_is_set("addResources"):
            grant.addResources = [objects.GrantInfoV1(resourceDefinitionId=each.id) for each in asked.addResources]
            images = [
                objects.VimSoftwareImageV1(vnfdSoftwareImageId=name, vimSoftwareImageId=IMAGE)
                for name in self._vnfd.get_sw_image_data(flavour)
            ]
            grant.vimAssets = objects.GrantV1_VimAssets(softwareImages=images)
        return grant


def main() -> None:
    given = json.load(sys.stdin)
    objects.register_all()
    config.CONF([], project="tacker")
    heat_utils.CHECK_INTERVAL = ASK_S
    instantiate = paramgen.change_vnfpkg_instantiate(given["networks"], {}, given["auth_url"])
    instantiate["vimConnectionInfo"]["vim1"]["accessInfo"] |= given["access"]
    function = Function(given["package"], instantiate["vimConnectionInfo"])
    function.do("INSTANTIATE", instantiate, "instantiated")
    function.do("SCALE", paramgen.scaleout_vnf_max(), "scaled out")
    function.do("SCALE", paramgen.scalein_vnf_max(), "scaled in")
    function.do("SCALE", paramgen.scaleout_vnf_max(), "scaled out again")
    one = function.parts("VDU1")[0]
    function.do("HEAL", paramgen.heal_vnf_vnfc_max(one), "one healed")
    moved = {**instantiate["extVirtualLinks"][0], "id": uuidutils.generate_uuid()}
    moved |= {"resourceId": given["networks"]["net1"], "extCps": moved["extCps"][:1]}
    function.do("CHANGE_EXT_CONN", {"extVirtualLinks": [moved]}, "connected elsewhere")
    function.do("HEAL", paramgen.heal_vnf_all_max_with_parameter(True), "all healed")
    function.do("TERMINATE", paramgen.terminate_vnf_max(), "terminated")


main()
