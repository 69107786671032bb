"""Types of container clusters."""

from collections.abc import Mapping

from homeostat.resources.base import Props, ResourceType
from homeostat.resources.constraints import IP_ADDRESS
from homeostat.resources.rules import is_set, require
from homeostat.resources.schema import (
    UNKNOWN,
    Attribute,
    ValueType,
    between,
    boolean,
    integer,
    link,
    mapping,
    one_of,
    text,
)
from homeostat.resources.support import Support

VOLUME_DRIVERS: Mapping[str, str] = {"kubernetes": "cinder", "swarm": "rexray", "mesos": "rexray"}
"""Kind of cluster -> its only supported volume driver."""


class ClusterTemplate(ResourceType):
    name = "OS::Magnum::ClusterTemplate"
    kind = "cluster_template"
    support = Support(version="9.0.0")
    description = "What clusters of containers are made from."
    properties = {
        "name": text("Name of the cluster template."),
        "image": link("Image of the nodes.", "glance.image", required=True),
        "flavor": link("Flavor of the nodes.", "nova.flavor"),
        "master_flavor": link("Flavor of the masters.", "nova.flavor"),
        "keypair": link("Key pair that may log in to nodes.", "nova.keypair"),
        "external_network": link("Network to the outside.", "neutron.network", required=True),
        "fixed_network": link("Network of the nodes.", "neutron.network"),
        "fixed_subnet": link("Subnet of the nodes.", "neutron.subnet"),
        "dns_nameserver": text("Address of the DNS server to use.", constraints=(IP_ADDRESS,)),
        "docker_volume_size": integer("Size of the volume for images, in GiB.", constraints=(between(1),)),
        "docker_storage_driver": text(
            "How images are stored.", default="devicemapper", constraints=(one_of("devicemapper", "overlay"),)
        ),
        "coe": text("What runs the containers.", required=True, constraints=(one_of(*VOLUME_DRIVERS),)),
        "network_driver": text("What connects the containers."),
        "volume_driver": text("What gives them volumes.", constraints=(one_of("cinder", "rexray"),)),
        "http_proxy": text("Proxy for HTTP."),
        "https_proxy": text("Proxy for HTTPS."),
        "no_proxy": text("Addresses to reach without a proxy, separated by commas."),
        "labels": mapping("Labels: further settings."),
        "tls_disabled": boolean("Use no TLS in the cluster.", default=False),
        "public": boolean("All projects may use it.", default=False, update=True),
        "registry_enabled": boolean("Have a registry of images in the cluster.", default=False),
        "server_type": text("Virtual machines or bare metal.", default="vm", constraints=(one_of("vm", "bm"),)),
        "master_lb_enabled": boolean("Have a load balancer before the masters.", default=True),
        "floating_ip_enabled": boolean("Give nodes floating IPs.", default=True),
    }
    renamed = {
        "image": "image_id",
        "flavor": "flavor_id",
        "master_flavor": "master_flavor_id",
        "keypair": "keypair_id",
        "external_network": "external_network_id",
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        driver, coe = values.get("volume_driver"), values.get("coe")
        if is_set(values, "volume_driver") and UNKNOWN not in (driver, coe):
            possible = VOLUME_DRIVERS[str(coe)]
            require(driver == possible, f"volume_driver must be {possible} when coe is {coe}", path)


class Cluster(ResourceType):
    name = "OS::Magnum::Cluster"
    kind = "container_cluster"
    support = Support(version="9.0.0")
    description = "A cluster that runs containers."
    properties = {
        "name": text("Name of the cluster."),
        "cluster_template": link("What it is made from.", "magnum.cluster_template", required=True),
        "keypair": link("Key pair that may log in to nodes, instead of the template's.", "nova.keypair"),
        "node_count": integer("How many nodes.", default=1, update=True, constraints=(between(1),)),
        "master_count": integer("How many masters.", default=1, update=True, constraints=(between(1),)),
        "discovery_url": text("URL by which nodes find each other.", update=True),
        "create_timeout": integer(
            "Minutes that its creation may take; 0 for any time.",
            default=60,
            update=True,
            drift=False,
            constraints=(between(0),),
        ),
    }
    attributes = {
        "api_address": Attribute("URL of its API."),
        "stack_id": Attribute("Stack that it is made of."),
        "coe_version": Attribute("Version of what runs the containers."),
        "master_addresses": Attribute("Addresses of its masters.", ValueType.LIST),
        "status": Attribute("Status of the cluster."),
        "master_count": Attribute("How many masters it has.", ValueType.INTEGER),
        "node_addresses": Attribute("Addresses of its nodes.", ValueType.LIST),
        "status_reason": Attribute("Why it has its status."),
        "node_count": Attribute("How many nodes it has.", ValueType.INTEGER),
        "name": Attribute("Name of the cluster."),
        "container_version": Attribute("Version of the containers' engine."),
        "discovery_url": Attribute("URL by which nodes find each other."),
        "cluster_template_id": Attribute("What it is made from."),
        "keypair": Attribute("Key pair that may log in to nodes."),
        "create_timeout": Attribute("Minutes that its creation may take.", ValueType.INTEGER),
    }
    renamed = {"cluster_template": "cluster_template_id"}


TYPES: list[type[ResourceType]] = [ClusterTemplate, Cluster]
