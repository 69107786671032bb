"""The life of one virtual network function under Tacker's own driver, without Tacker's server; run in `.tacker`.

Reads what it needs as a line of JSON from its input, prints a line of JSON after each operation, and goes on once it
has read another line.
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

VNFD_ID, NEW_VNFD_ID = uuidutils.generate_uuid(), uuidutils.generate_uuid()
ASK_S = 1
REQUESTS = {
    "INSTANTIATE": "InstantiateVnfRequest",
    "SCALE": "ScaleVnfRequest",
    "HEAL": "HealVnfRequest",
    "CHANGE_EXT_CONN": "ChangeExtVnfConnectivityRequest",
    "CHANGE_VNFPKG": "ChangeCurrentVnfPkgRequest",
    "TERMINATE": "TerminateVnfRequest",
}


class Operation:
    """What the driver of the conductor reads of an operation."""

    def __init__(self, name: str, request: Any) -> None:
        self.operation, self.operationParams = name, request


class Function:
    """A virtual network function made from a sample package."""

    def __init__(self, package: str, image: str, access: Any) -> None:
        self._conductor, self._driver = vnflcm_driver_v2.VnfLcmDriverV2(), openstack.Openstack()
        self._vnfd, self._image = described(VNFD_ID, package), image
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
        print(json.dumps({"reported": reported, "servers": self._done(name, body)}), flush=True)
        sys.stdin.readline()

    def change_package(self, package: str, image: str, reported: str) -> None:
        """Go over to another package and its image, one part after the other."""
        self._vnfd, self._image = described(NEW_VNFD_ID, package), image
        body = paramgen.change_vnfpkg(NEW_VNFD_ID)
        # The scripts of the sample log in to guests, which never boot here.
        scripts = [name for name in body["additionalParams"] if name.startswith("lcm-operation-coordinate")]
        for script in scripts:
            del body["additionalParams"][script]
        self.do("CHANGE_VNFPKG", body, reported)

    def _done(self, name: str, body: Any) -> dict[str, str]:
        request = getattr(objects, REQUESTS[name]).from_dict(body)
        before = self.instance.obj_clone()
        asked = objects.GrantRequestV1(
            vnfInstanceId=self.instance.id,
            vnfLcmOpOccId=uuidutils.generate_uuid(),
            vnfdId=self.instance.vnfdId,
            operation=name,
            isAutomaticInvocation=False,
        )
        getattr(self._conductor, f"{name.lower()}_grant")(asked, request, self.instance, self._vnfd)
        grant = self._granted(asked, request.flavourId if name == "INSTANTIATE" else self._info.flavourId)
        getattr(self._driver, name.lower())(request, self.instance, asked, grant, self._vnfd)
        if name != "TERMINATE":
            self._conductor._make_inst_info_common(Operation(name, request), before, self.instance, self._vnfd)
        parts = [] if name == "TERMINATE" else self._info.vnfcResourceInfo
        return {each.computeResource.resourceId: each.vduId for each in parts}

    def part(self, vdu: str) -> tuple[str, str]:
        """Return the id of the newest part that runs one kind of server, and that of its server."""
        resources = {each.id: each.computeResource.resourceId for each in self._info.vnfcResourceInfo}
        first = next(each for each in self._info.vnfcInfo if each.vduId == vdu)
        return first.id, resources[first.vnfcResourceInfoId]

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
                objects.VimSoftwareImageV1(vnfdSoftwareImageId=name, vimSoftwareImageId=self._image)
                for name in self._vnfd.get_sw_image_data(flavour)
            ]
            grant.vimAssets = objects.GrantV1_VimAssets(softwareImages=images)
        return grant


def described(vnfd_id: str, package: str) -> Any:
    """Return the description of a function in a package."""
    vnfd = vnfd_utils.Vnfd(vnfd_id)
    vnfd.init_from_csar_dir(package)
    return vnfd


def main() -> None:
    given = json.loads(sys.stdin.readline())
    objects.register_all()
    config.CONF([], project="tacker")
    heat_utils.CHECK_INTERVAL = ASK_S
    instantiate = paramgen.change_vnfpkg_instantiate(given["networks"], {}, given["auth_url"])
    instantiate["vimConnectionInfo"]["vim1"]["accessInfo"] |= given["access"]
    function = Function(given["package"], given["image"], instantiate["vimConnectionInfo"])
    function.do("INSTANTIATE", instantiate, "instantiated")
    function.do("SCALE", paramgen.scaleout_vnf_max(), "scaled out")
    function.do("SCALE", paramgen.scalein_vnf_max(), "scaled in")
    function.do("SCALE", paramgen.scaleout_vnf_max(), "scaled out again")
    part, server = function.part("VDU1")
    function.do("HEAL", paramgen.heal_vnf_vnfc_max(part), f"healed in place of {server}")
    function.change_package(given["new_package"], given["new_image"], "of another package")
    moved = {**instantiate["extVirtualLinks"][0], "id": uuidutils.generate_uuid()}
    moved |= {"resourceId": given["networks"]["net1"], "extCps": moved["extCps"][:1]}
    function.do("CHANGE_EXT_CONN", {"extVirtualLinks": [moved]}, "connected elsewhere")
    function.do("HEAL", paramgen.heal_vnf_all_max_with_parameter(True), "all healed")
    function.do("TERMINATE", paramgen.terminate_vnf_max(), "terminated")


main()
