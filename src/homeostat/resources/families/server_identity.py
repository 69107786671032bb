"""What another server is made with so that it keeps the ports, addresses and volumes of the one before. Pure.

A port that the cloud has made for a server goes with it: another one gets its fixed address. A port or a volume that
stood beside the server, and was attached to it, is attached again.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from homeostat.model.health_policy import Preserved

Props = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Card:
    """A network card of a server, as its cloud shows it; address — the first fixed one, "" for none."""

    port: str
    network: str
    network_id: str
    address: str


def identity(values: Props, seen: Props, preserved: Collection[Preserved], managed: Collection[str]) -> dict[str, Any]:
    """Return properties with which another server is made in the place of one, as far as they differ.

    Args:
        values: Properties of the server, with defaults.
        seen: Fields of the server as last seen.
        preserved: What it is to keep.
        managed: Ids of volumes that its stack attaches by resources of their own.
    """
    found: dict[str, Any] = {}
    cards = _cards(seen.get("addresses") or {})
    if cards and {Preserved.PORTS, Preserved.ADDRESSES} & set(preserved):
        found["networks"] = _networks(values.get("networks") or [], cards, preserved)
    volumes = [each for each in seen.get("volumes") or () if not each.get("delete_on_termination")]
    if volumes and Preserved.VOLUMES in preserved and not values.get("block_device_mapping"):
        devices = values.get("block_device_mapping_v2") or []
        ids = [str(each["id"]) for each in volumes if each["id"] not in managed]
        found["block_device_mapping_v2"] = _devices(devices, ids)
    return {name: value for name, value in found.items() if value != (values.get(name) or [])}


def _cards(addresses: Mapping[str, Iterable[Props]]) -> list[Card]:
    cards: dict[str, Card] = {}
    for network, group in addresses.items():
        for each in group:
            port = str(each.get("port") or "")
            if port and each.get("type", "fixed") == "fixed" and port not in cards:
                cards[port] = Card(port, network, str(each.get("network") or ""), str(each.get("addr") or ""))
    return list(cards.values())


def _networks(given: list[Props], cards: list[Card], preserved: Collection[Preserved]) -> list[Props]:
    """Return the entries with the addresses of their cards, and after them the ports that were attached besides."""
    left = {each.port: each for each in cards}
    named = {str(each.get("port")) for each in given}
    own_cards = [each for port, each in left.items() if port not in named]
    allocated = {each.get("allocate_network") for each in given}
    if "none" in allocated:  # all were attached besides
        return [{"port": each} for each in left] if Preserved.PORTS in preserved else given
    # Without entries, and for "auto", the cloud has chosen the network, and made the only card.
    entries: list[Props] = (given if "auto" not in allocated else []) or [
        {"network": each.network_id or each.network} for each in own_cards[:1]
    ]
    found: list[Props] = []
    told = True
    for entry in entries:
        card = left.get(str(entry.get("port"))) or _card_of(entry, entries, own_cards)
        if card is not None:
            left.pop(card.port, None)
        told = told and (card is not None or bool(entry.get("port")))
        if card in own_cards:
            own_cards.remove(card)
            if Preserved.ADDRESSES in preserved and card.address:
                entry = {**entry, "fixed_ip": card.address}
        found.append(entry)
    # Where the card of an entry cannot be told, one that is left may have been made for it, and goes with the server.
    besides = [{"port": each.port} for each in left.values()] if told and Preserved.PORTS in preserved else []
    return [*found, *besides]


def _card_of(entry: Props, entries: list[Props], cards: list[Card]) -> Card | None:
    """Return the card that was made for an entry without a port; None where that cannot be said."""
    if entry.get("port"):
        return None
    network = entry.get("network")
    fitting = [each for each in cards if network and network in (each.network, each.network_id)]
    if fitting:
        return fitting[0]
    # Named otherwise, such as by its subnet: certain only where there is one of each.
    return cards[0] if len(cards) == 1 and len(entries) == 1 else None


def _devices(given: list[Props], volumes: list[str]) -> list[Props]:
    """Return the devices with the volume that was made for one of them, or with those that were attached besides."""
    named = {each.get("volume_id") for each in given}
    left = [each for each in volumes if each not in named]
    made = [place for place, each in enumerate(given) if _makes_volume(each)]
    if not made:
        return [*given, *({"volume_id": each, "boot_index": -1} for each in left)]
    if len(made) > 1 or len(left) != 1:
        return given  # which of them is which cannot be said
    kept = {name: given[made[0]][name] for name in ("boot_index", "device_name", "disk_bus") if name in given[made[0]]}
    devices = list(given)
    devices[made[0]] = {"boot_index": 0, **kept, "volume_id": left[0]}
    return devices


def _makes_volume(device: Props) -> bool:
    """Return whether a volume that outlives the server is made for a device."""
    return bool(device.get("image") or device.get("snapshot_id")) and not device.get("delete_on_termination")
