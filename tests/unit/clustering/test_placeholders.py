"""Placeholders in URLs and parameters."""

from typing import Any

import pytest

from homeostat.clustering.decisions.placeholders import expanded, expanded_url, needed_in, unknown_in
from homeostat.model.node_health import NodeNames

NAMES = NodeNames("web 1/a", "n-1", "p-1", "10.0.0.5", "{nodeid}", "c-1")


@pytest.mark.shows("HS11")
@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://{nodename}/x", "http://web%201%2Fa/x"),
        ("http://{nodeip}:80/{nodeid}/{physicalid}", "http://10.0.0.5:80/n-1/p-1"),
        ("http://x/?c={clustername}&i={clusterid}", "http://x/?c=%7Bnodeid%7D&i=c-1"),
        ("http://x/{{ node.name }}/{{cluster.id}}", "http://x/web%201%2Fa/c-1"),
        ("http://x/{other}/{}/{ nodeid }", "http://x/{other}/{}/{ nodeid }"),
        ("http://x/{{ other }}", "http://x/{{ other }}"),
        ("plain", "plain"),
    ],
)
def test_urls_are_expanded_with_encoded_values(url: str, expected: str) -> None:
    assert expanded_url(url, NAMES) == expected


@pytest.mark.parametrize(
    ("address", "expected"), [("fd00::5", "http://[fd00::5]:8"), ("10.0.0.5", "http://10.0.0.5:8"), ("x", "http://x:8")]
)
def test_an_address_of_ipv6_gets_its_brackets(address: str, expected: str) -> None:
    assert expanded_url("http://{nodeip}:8", NodeNames(address=address)) == expected


@pytest.mark.shows("HS16")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("{{ node.physicalid }}", "p-1"),
        ("{{node.physical_id}} {nodename}", "p-1 web 1/a"),
        ({"{nodeid}": ["{nodeid}", {"a": "{clustername}"}]}, {"{nodeid}": ["n-1", {"a": "{nodeid}"}]}),
        ([1, None, True], [1, None, True]),
        ("{{ _.other }}", "{{ _.other }}"),
    ],
)
def test_parameters_are_expanded_once(value: Any, expected: Any) -> None:
    assert expanded(value, NAMES) == expected


@pytest.mark.parametrize(
    ("text", "unknown", "needed"),
    [
        ("http://{nodename}/{nodeip}/{nodename}", "", ("nodename", "nodeip")),
        ("http://{name}", "{name}", ()),
        ("{{ node.ip }}{nodeid}", "", ("nodeip", "nodeid")),
        ("{{ node.size }}", "{{ node.size }}", ()),
        ("{}", "", ()),
    ],
)
def test_what_a_text_needs(text: str, unknown: str, needed: tuple[str, ...]) -> None:
    assert (unknown_in(text), needed_in(text)) == (unknown, needed)
