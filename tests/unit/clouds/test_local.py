"""The pure parts of the local cloud: addresses of subnets, the choice among the members of a pool."""

import ipaddress
from collections import Counter
from typing import Any

import pytest

from homeostat.clouds.local import forwarder
from homeostat.clouds.local.addresses import choose, loopback_block, translate
from homeostat.model.errors import Terminal, Transient

SUBNET = {"cidr": "10.1.0.0/29", "loopback_cidr": "127.40.8.0/29", "gateway_ip": "10.1.0.1", "allocation_pools": None}


@pytest.mark.parametrize(
    ("cidr", "prefix", "reason"),
    [
        ("10.0.0.0/24", 24, "a block of the same size"),
        ("10.0.0.0/8", 16, "at most a /16"),
        ("192.168.1.7/32", 32, "down to one address"),
        ("fd00::/64", 20, "addresses of the newer protocol are reached by the older one"),
        ("127.200.3.0/25", 25, "a loopback cidr is used as it is"),
    ],
)
def test_block_of_a_subnet(cidr: str, prefix: int, reason: str) -> None:
    network = ipaddress.ip_network(cidr)
    block = loopback_block(network, [], "seed")
    assert block.prefixlen == prefix, reason
    assert block.subnet_of(ipaddress.IPv4Network("127.0.0.0/8"))
    assert not block.overlaps(ipaddress.IPv4Network("127.0.0.0/12")), "where people and system services listen"
    if network.is_loopback:
        assert block == network


def test_blocks_do_not_overlap_and_run_out() -> None:
    taken: list[ipaddress.IPv4Network] = []
    for _ in range(224):
        block = loopback_block(ipaddress.ip_network("10.0.0.0/16"), taken, "seed")
        assert not any(block.overlaps(other) for other in taken)
        taken.append(block)
    with pytest.raises(Transient, match="delete subnets"):
        loopback_block(ipaddress.ip_network("10.0.0.0/30"), taken, "seed")
    with pytest.raises(Terminal, match="overlaps"):
        loopback_block(ipaddress.ip_network("127.100.0.0/24"), taken, "seed")


@pytest.mark.parametrize(
    ("taken", "wanted", "chosen", "reason"),
    [
        (set(), None, "127.40.8.2", "the first that is neither the network nor the gateway"),
        ({"127.40.8.2"}, None, "127.40.8.3", "the next free one"),
        (set(), "10.1.0.5", "127.40.8.5", "the place in the block is kept"),
        (set(), "127.40.8.6", "127.40.8.6", "the loopback address itself can be asked for"),
        ({"127.40.8.5"}, "10.1.0.5", Transient, "who has it may let go of it"),
        ({f"127.40.8.{n}" for n in range(8)}, None, Transient, "so may the others"),
        (set(), "10.2.0.5", Terminal, "not an address of this subnet"),
        (set(), "nonsense", Terminal, "not an address"),
    ],
)
def test_choice_of_an_address(taken: set[str], wanted: str | None, chosen: Any, reason: str) -> None:
    if isinstance(chosen, str):
        assert choose(SUBNET, taken, wanted) == chosen, reason
    else:
        with pytest.raises(chosen):
            choose(SUBNET, taken, wanted)


def test_a_pool_of_addresses_bounds_the_choice() -> None:
    subnet = {**SUBNET, "allocation_pools": [{"start": "10.1.0.4", "end": "10.1.0.5"}]}
    assert choose(subnet, {"127.40.8.4"}, None) == "127.40.8.5"
    with pytest.raises(Transient):
        choose(subnet, {"127.40.8.4", "127.40.8.5"}, None)


def test_addresses_beyond_the_block_cannot_be_reached() -> None:
    with pytest.raises(Terminal, match=r"127\.50\.0\.0/16"):
        translate({"cidr": "10.0.0.0/8", "loopback_cidr": "127.50.0.0/16"}, "10.9.0.1")


def pool(algorithm: str, *weights: int) -> forwarder.Pool:
    return forwarder.Pool({"algorithm": algorithm}, [forwarder.Member({"id": str(n), "weight": n}) for n in weights])


def test_turns_follow_the_weights() -> None:
    among = pool("ROUND_ROBIN", 3, 1, 0)
    turns = [among.members.index(chosen) for _ in range(8) if (chosen := among.choose("x", ()))]
    assert Counter(turns) == {0: 6, 1: 2}
    assert turns[:4] != [0, 0, 0, 1], "a light member does not wait for the heavy one to be through"


def test_the_least_busy_member_is_chosen() -> None:
    among = pool("LEAST_CONNECTIONS", 1, 2)
    assert among.choose("x", ()) is among.members[1], "who weighs more takes more"
    among.members[1].connections = 4
    assert among.choose("x", ()) is among.members[0]


def test_a_client_keeps_its_member() -> None:
    among = pool("SOURCE_IP", 1, 1, 1)
    assert len({id(among.choose("127.0.0.1", ())) for _ in range(9)}) == 1
    assert len({id(among.choose(f"127.0.0.{n}", ())) for n in range(50)}) == 3


def test_members_that_are_ill_or_were_tried_are_passed_over() -> None:
    among = pool("ROUND_ROBIN", 1, 2, 3)
    among.members[0].online = False
    assert among.choose("x", [among.members[1]]) is among.members[2]
    assert among.choose("x", among.members[1:]) is None


def test_health_follows_repeated_checks() -> None:
    member = forwarder.Member({})
    seen = []
    for passed in (True, False, False, True, True):
        member.judge(passed, retries=2)
        seen.append(member.online)
    assert seen == [True, True, False, False, True]


@pytest.mark.parametrize(
    ("code", "codes", "fits"), [(200, "200", True), (204, "200-204", True), (302, "200,301", False)]
)
def test_expected_codes(code: int, codes: str, fits: bool) -> None:
    assert forwarder.expected(code, codes) is fits
