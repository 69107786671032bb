"""Names of other objects become ids, as the schemas of the resource types say."""

import pytest

from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.registry import COLLECTIONS
from homeostat.resources.kind_fields import fields_of, links_of


def test_the_schema_names_the_fields_that_refer_to_objects() -> None:
    assert links_of("port") == {"network_id": "network", "qos_policy_id": "qos_policy"}
    assert links_of("port_chain") == {"port_pair_groups": "port_pair_group", "flow_classifiers": "flow_classifier"}


@pytest.mark.parametrize("collection", [each for each in COLLECTIONS if each.links], ids=lambda each: each.kind)
def test_a_collection_names_only_links_that_the_schema_lacks(collection: type[Collection]) -> None:
    assert collection.links.items() & links_of(collection.kind).items() == set()
    assert collection.links.keys() <= fields_of(collection.kind).all.keys()
