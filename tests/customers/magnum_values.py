"""Values that templates set on what container clusters are made from; see `tests.openstack.normal_values`."""

from collections.abc import Mapping

from tests.openstack.normal_values import NAMES, OFF, Values

CONTAINERS: Mapping[str, Values] = {
    "OS::Magnum::ClusterTemplate": Values(
        {"image": "$image", "external_network": "public", "coe": "kubernetes", "docker_storage_driver": "overlay"},
        {
            "name": NAMES,
            "image": ["$image_name"],
            "flavor": ["m1.medium"],
            "master_flavor": ["m1.medium"],
            "keypair": ["$key"],
            "external_network": ["$public"],
            "fixed_network": ["private", "$private"],
            "fixed_subnet": ["$subnet"],
            "dns_nameserver": ["10.0.0.53", "FD00:0:0::53"],
            "docker_volume_size": [1, "2"],
            "docker_storage_driver": ["devicemapper"],
            "coe": ["swarm"],
            "network_driver": ["flannel", "calico", "none"],
            "volume_driver": ["cinder"],
            "http_proxy": ["http://Proxy.example:3128/", "  http://a.example "],
            "https_proxy": ["http://Proxy.example:3128/"],
            "no_proxy": ["10.0.0.1,a.example", "a.example, 10.0.0.1"],
            "labels": [
                {"etcd_volume_size": 1, "ingress_controller": "", "Mixed": "Case"},
                {"yes": True},
                {},
            ],
            "tls_disabled": [True, "false"],
            "public": [False, "true"],
            "registry_enabled": [True, "false"],
            "server_type": ["bm"],
            "master_lb_enabled": OFF,
            "floating_ip_enabled": OFF,
        },
        together={"fixed_subnet": {"fixed_network": "private"}},
    ),
}
