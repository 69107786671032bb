"""Profiles made from servers that exist."""

from typing import Any

import pytest

from homeostat.clustering.decisions.profiles import check_profile
from homeostat.clustering.decisions.server_profile import server_spec

SEEN = {"name": "s", "flavor": "m1", "image": "i", "status": "active"}


@pytest.mark.parametrize(
    ("more", "overrides", "expected"),
    [
        ({}, {}, {"flavor": "m1", "image": "i"}),
        ({"key_name": "k", "availability_zone": "z"}, {}, {"key_name": "k", "availability_zone": "z"}),
        ({"metadata": {"a": "b", "cluster_id": "c", "cluster_node_id": "n"}}, {}, {"metadata": {"a": "b"}}),
        ({"addresses": {"net": [{"addr": "192.0.2.1", "network": "id"}]}}, {}, {"networks": [{"network": "id"}]}),
        ({"addresses": {"net": []}}, {}, {"networks": [{"network": "net"}]}),
        ({"networks": [{"network": "net", "fixed_ip": "192.0.2.1"}]}, {}, {"networks": [{"network": "net"}]}),
        ({"config_drive": True, "diskConfig": "MANUAL"}, {}, {"config_drive": True, "auto_disk_config": False}),
        ({"security_groups": ["a", "a", "b"]}, {}, {"security_groups": ["a", "b"]}),
        ({}, {"flavor": "m2", "metadata": {"c": "d"}}, {"flavor": "m2", "metadata": {"c": "d"}}),
    ],
)
def test_a_server_becomes_a_profile(more: Any, overrides: Any, expected: Any) -> None:
    spec = server_spec({**SEEN, **more}, overrides)
    assert spec["properties"] == {"flavor": "m1", "image": "i", **expected}
    check_profile(spec)
