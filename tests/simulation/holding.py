"""Worlds whose servers hold what one at a time can have: ports, addresses and volumes (ADR 0094)."""

import random
from typing import Any

from homeostat.model.status import Action, Status
from homeostat.resources.registry import kind_of
from tests.simulation.parts import Part
from tests.simulation.templates import SERVER, VOLUME, Resources, TemplateMutator
from tests.simulation.users import Users

PORT = "OS::Neutron::Port"


class HoldingGardener(TemplateMutator):
    """Grows servers on ports and addresses, which boot from volumes; nothing is wanted by two at a time."""

    def __init__(self, rng: random.Random, *, nested: bool) -> None:
        super().__init__(rng, nested=nested)
        self._numbers = 0

    def _simple(self, earlier: Resources) -> dict[str, Any]:
        draw = self._rng.random()
        if draw < 0.3:
            return {"type": PORT, "properties": self._port()}
        if draw < 0.7:
            return {"type": SERVER, "properties": self._server(earlier)}
        return super()._simple(earlier)

    def _port(self) -> dict[str, Any]:
        """A port with an address of its own, which it keeps on whatever network it is."""
        self._numbers += 1
        address = f"10.9.{self._numbers // 250}.{self._numbers % 250 + 1}"
        return {"network": self._rng.choice(("here", "there")), "fixed_ips": [{"ip_address": address}]}

    def _server(self, earlier: Resources) -> dict[str, Any]:
        rng = self._rng
        server: dict[str, Any] = {"image": "i", "flavor": "small", "user_data": str(rng.randint(0, 2))}
        ports, volumes = self._free(PORT, earlier), self._free(VOLUME, earlier)
        if ports and rng.random() < 0.8:
            server["networks"] = [{"port": {"get_resource": rng.choice(ports)}}]
        elif rng.random() < 0.5:
            self._numbers += 1
            address = f"10.8.{self._numbers // 250}.{self._numbers % 250 + 1}"
            server["networks"] = [{"network": "here", "fixed_ip": address}]
        if volumes and rng.random() < 0.3:
            device = {"device_name": "vdb", "volume_id": {"get_resource": rng.choice(volumes)}}
            server["block_device_mapping_v2"] = [{**device, "delete_on_termination": False}]
        return server

    def _free(self, kind: str, earlier: Resources) -> list[str]:
        """Names of the earlier ones of a type that no other server has."""
        used = str([each["properties"] for each in earlier.values() if each["type"] == SERVER])
        return sorted(n for n, each in earlier.items() if each["type"] == kind and f"'{n}'" not in used)

    def _change(self, resources: Resources, name: str) -> None:
        rng, resource = self._rng, resources[name]
        if resource["type"] == PORT:
            resource["properties"] = {**resource["properties"], "network": rng.choice(("here", "there"))}
        elif resource["type"] == SERVER and "user_data" in resource["properties"] and rng.random() < 0.8:
            others = [
                each for each in resources.values() if each["type"] == SERVER and "networks" in each["properties"]
            ]
            if "networks" in resource["properties"] and others and rng.random() < 0.3:
                self._swap(resources, name)
            if rng.random() < 0.7:
                resource["properties"] = {**resource["properties"], "user_data": str(rng.randint(0, 2))}
        else:
            super()._change(resources, name)

    def _swap(self, resources: Resources, name: str) -> None:
        """Have another server, which may come after the same ports, get its networks, and the other way round."""
        mine = resources[name]["properties"]
        for other, each in resources.items():
            theirs = each["properties"]
            if other == name or each["type"] != SERVER or "networks" not in theirs:
                continue
            if str(max(self._ports(mine), self._ports(theirs))) < min(name, other):
                mine["networks"], theirs["networks"] = theirs["networks"], mine["networks"]
                return

    def _ports(self, server: dict[str, Any]) -> str:
        """The last of the ports of a server; one that was removed leaves a text in its place."""
        ports = (each.get("port") for each in server["networks"])
        return max((each["get_resource"] for each in ports if isinstance(each, dict)), default="")


class Holding(Part):
    """In the end every server of a complete stack has its own ports, addresses and volumes."""

    def begin(self) -> None:
        self.world.part(Users).gardener = HoldingGardener(self.rng, nested=self.world.seed % 2 == 0)

    def rested(self) -> None:
        things, stacks = self.world.things(), self.world.all_stacks()
        complete = {each.id for each in stacks if each.status == Status.COMPLETE and each.lock is None}
        for row in self.world.rows():
            at_rest = row.status == Status.COMPLETE and row.action not in (Action.INIT, Action.DELETE)
            if row.stack_id in complete and at_rest and row.handle in things:
                self._check_held(row, things[row.handle])

    def _check_held(self, row: Any, thing: dict[str, Any]) -> None:
        place, values = f"{row.name} ({row.handle})", row.properties
        # What was abandoned while an update was to replace it is adopted as it is, and this cloud shows no networks of
        # a server that was made without any: no look finds a difference.
        if row.action == Action.ADOPT and "networks" not in thing:
            return
        if kind_of(row.type) == "server" and values.get("networks"):
            wanted = [each.get("port") or each.get("fixed_ip") for each in values["networks"]]
            has = [each.get("port") or each.get("fixed_ip") for each in thing["networks"]]
            assert has == wanted, f"{place} is to have {wanted}, and has {has}"
            self.world.happened["holds"] += 1
        if kind_of(row.type) == "port" and values.get("fixed_ips"):
            addresses = [each["ip_address"] for each in thing["fixed_ips"]]
            assert addresses == [each["ip_address"] for each in values["fixed_ips"]], f"{place} has {addresses}"
