"""Types of quotas: how much of each service a project may use. Deleting a quota restores the defaults."""

from typing import ClassVar

from homeostat.resources.base import Props, ResourceType
from homeostat.resources.rules import is_set, missing
from homeostat.resources.schema import Property, Schema, between, custom, integer, text

PROJECT = text("Project whose quota it is.", required=True, constraints=(custom("keystone.project"),))


def _limit(what: str) -> Property:
    return integer(f"Most {what}; -1 for any number.", update=True, constraints=(between(-1),))


class Quota(ResourceType):
    """Base of the types of quotas: each has a project and at least one limit."""

    limits: ClassVar[Schema] = {}

    def __init_subclass__(cls) -> None:
        cls.properties = {"project": PROJECT, **cls.limits}
        super().__init_subclass__()

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        if not any(is_set(values, name) for name in self.limits):
            raise missing(path, *self.limits)


class ComputeQuota(Quota):
    name = "OS::Nova::Quota"
    kind = "compute_quota"
    description = "How much of compute a project may have."
    limits = {
        "cores": _limit("processor cores"),
        "fixed_ips": _limit("fixed addresses"),
        "floating_ips": _limit("floating addresses"),
        "instances": _limit("servers"),
        "injected_files": _limit("files put into a server"),
        "injected_file_content_bytes": _limit("bytes in such a file"),
        "injected_file_path_bytes": _limit("bytes in the path of such a file"),
        "key_pairs": _limit("key pairs"),
        "metadata_items": _limit("entries in the metadata of a server"),
        "ram": _limit("memory in MiB"),
        "security_groups": _limit("security groups"),
        "security_group_rules": _limit("rules in a security group"),
        "server_groups": _limit("server groups"),
        "server_group_members": _limit("servers in a group"),
    }


class NetworkQuota(Quota):
    name = "OS::Neutron::Quota"
    kind = "network_quota"
    description = "How much of networking a project may have."
    limits = {
        "subnet": _limit("subnets"),
        "network": _limit("networks"),
        "floatingip": _limit("floating addresses"),
        "security_group_rule": _limit("rules of security groups"),
        "security_group": _limit("security groups"),
        "router": _limit("routers"),
        "port": _limit("ports"),
        "subnetpool": _limit("pools of subnets"),
        "rbac_policy": _limit("rules of sharing"),
    }


class VolumeQuota(Quota):
    name = "OS::Cinder::Quota"
    kind = "volume_quota"
    description = "How much of block storage a project may have."
    limits = {
        "gigabytes": _limit("GiB in volumes and snapshots"),
        "volumes": _limit("volumes"),
        "backups": _limit("backups"),
        "backup_gigabytes": _limit("GiB in backups"),
        "snapshots": _limit("snapshots"),
    }


class LoadBalancerQuota(Quota):
    name = "OS::Octavia::Quota"
    kind = "load_balancer_quota"
    description = "How much of load balancing a project may have."
    limits = {
        "healthmonitor": _limit("health monitors"),
        "listener": _limit("listeners"),
        "loadbalancer": _limit("load balancers"),
        "pool": _limit("pools"),
        "member": _limit("members of pools"),
    }


TYPES: list[type[ResourceType]] = [ComputeQuota, NetworkQuota, VolumeQuota, LoadBalancerQuota]
