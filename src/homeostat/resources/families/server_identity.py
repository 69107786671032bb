"""Properties by which a replaced server keeps its ports, addresses and volumes. Pure.

A port that the cloud created for the server is deleted with the server: the replacement gets the fixed address of this
port. A separate port or volume that was attached to the server is attached again.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from homeostat.model.health_policy import Preserved

Props = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Card:
    """A network card of a server, as reported by the cloud; `address` is the first fixed address, or ""."""

    port: str
    network: str
    network_id: str
    address: str


def identity(values: Props, seen: Props, preserved: Collection[Preserved], managed: Collection[str]) -> dict[str, Any]:
    """Return the properties of the replacement that differ from the server's own.

    Args:
        values: Properties of the server, with defaults.
        seen: Fields of the server as last seen.
        preserved: Aspects of the identity to keep.
        managed: Ids of volumes that the stack attaches by separate resources.
    """
    changes: dict[str, Any] = {}
    cards = _cards(seen.get("addresses") or {})
    if cards and {Preserved.PORTS, Preserved.ADDRESSES} & set(preserved):
        changes["networks"] = _networks(values.get("networks") or [], cards, preserved)
    volumes = [volume for volume in seen.get("volumes") or () if not volume.get("delete_on_termination")]
    if volumes and Preserved.VOLUMES in preserved and not values.get("block_device_mapping"):
        devices = values.get("block_device_mapping_v2") or []
        ids = [str(volume["id"]) for volume in volumes if volume["id"] not in managed]
        changes["block_device_mapping_v2"] = _devices(devices, ids)
    return {name: value for name, value in changes.items() if value != (values.get(name) or [])}


def _cards(addresses: Mapping[str, Iterable[Props]]) -> list[Card]:
    cards: dict[str, Card] = {}
    for network, group in addresses.items():
        for address in group:
            port = str(address.get("port") or "")
            if port and address.get("type", "fixed") == "fixed" and port not in cards:
                cards[port] = Card(port, network, str(address.get("network") or ""), str(address.get("addr") or ""))
    return list(cards.values())


def _networks(networks: list[Props], cards: list[Card], preserved: Collection[Preserved]) -> list[Props]:
    """Return the entries of `networks` with the addresses of their cards, followed by separately attached ports."""
    left = {card.port: card for card in cards}
    named = {str(entry.get("port")) for entry in networks}
    own_cards = [card for port, card in left.items() if port not in named]
    allocated = {entry.get("allocate_network") for entry in networks}
    if "none" in allocated:  # all cards were attached later
        return [{"port": port} for port in left] if Preserved.PORTS in preserved else networks
    # Without entries, and for "auto", the cloud has chosen the network, and created the only card.
    entries: list[Props] = (networks if "auto" not in allocated else []) or [
        {"network": card.network_id or card.network} for card in own_cards[:1]
    ]
    result: list[Props] = []
    certain = True
    for entry in entries:
        card = left.get(str(entry.get("port"))) or _card_of(entry, entries, own_cards)
        if card is not None:
            left.pop(card.port, None)
        certain = certain and (card is not None or bool(entry.get("port")))
        if card in own_cards:
            own_cards.remove(card)
            if Preserved.ADDRESSES in preserved and card.address:
                entry = {**entry, "fixed_ip": card.address}
        result.append(entry)
    # If the card of an entry is uncertain, any card left over may be its card, whose port is deleted with the server.
    attached = [{"port": card.port} for card in left.values()] if certain and Preserved.PORTS in preserved else []
    return [*result, *attached]


def _card_of(entry: Props, entries: list[Props], cards: list[Card]) -> Card | None:
    """Return the card created for an entry without a port; None if uncertain."""
    if entry.get("port"):
        return None
    network = entry.get("network")
    fitting = [card for card in cards if network and network in (card.network, card.network_id)]
    if fitting:
        return fitting[0]
    # The entry has no network, but a subnet for instance: certain only if there is a single card and a single entry.
    return cards[0] if len(cards) == 1 and len(entries) == 1 else None


def _devices(mappings: list[Props], volumes: list[str]) -> list[Props]:
    """Return the devices with the volume created for them, or with the separately attached volumes added."""
    named = {mapping.get("volume_id") for mapping in mappings}
    left = [volume for volume in volumes if volume not in named]
    places = [place for place, mapping in enumerate(mappings) if _makes_volume(mapping)]
    if not places:
        return [*mappings, *({"volume_id": volume, "boot_index": -1} for volume in left)]
    if len(places) > 1 or len(left) != 1:
        return mappings  # several devices or volumes: no certain match
    place = places[0]
    kept = {
        name: mappings[place][name] for name in ("boot_index", "device_name", "disk_bus") if name in mappings[place]
    }
    devices = list(mappings)
    devices[place] = {"boot_index": 0, **kept, "volume_id": left[0]}
    return devices


def _makes_volume(device: Props) -> bool:
    """Return whether the cloud creates a volume for the device that outlives the server."""
    return bool(device.get("image") or device.get("snapshot_id")) and not device.get("delete_on_termination")
