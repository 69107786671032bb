"""Compute: servers, their hosts, key pairs, flavors and their groups."""

from collections.abc import Mapping, Sequence
from typing import Any

from homeostat.kinds.base import BOOLEAN, TEXT, Field, FieldType, Kind, Statuses, listing, mapping, snapshot_kind
from homeostat.model.errors import Terminal
from homeostat.model.observed import Remedy

FENCES = ("COMPUTE", "NETWORK", "STORAGE")
"""Arguments of `fence`: cut off a server's guest, its ports, or its volumes."""


FENCE_ANSWER = frozenset({"fenced", "not_fenced", "declared_down"})
"""Properties of a server that the answer to `fence` alone has."""


def fences_of(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the fences that the arguments of `fence` or `unfence` ask for, in the order of `FENCES`.

    Raises:
        Terminal: The arguments name an unknown fence, or no fence at all.
    """
    wanted = arguments.get("what", FENCES[:1])
    known = isinstance(wanted, list | tuple) and all(fence in FENCES for fence in wanted)
    if not known or not wanted:
        raise Terminal(f"fencing cuts off some of {', '.join(FENCES)}, not {wanted!r}")
    return tuple(fence for fence in FENCES if fence in wanted)


def unconfirmed(missing: Sequence[str], answer: Mapping[str, Any]) -> str:
    """Return the reason for fences that are not confirmed, with the explanations in the answer to `fence`."""
    whys: Mapping[str, str] = answer.get("not_fenced") or {}
    reasons = "; ".join(dict.fromkeys(str(whys[fence]) for fence in missing if whys.get(fence)))
    return f"it is not confirmed that it is cut off: {', '.join(missing)}{f': {reasons}' if reasons else ''}"


SERVER = Kind(
    "server",
    "A server.",
    extra_mutable={
        "networks": listing("[{network, port, fixed_ip}]"),
        "preserve_ephemeral": BOOLEAN,
        "keeps_user_data": Field(FieldType.BOOLEAN, "", "a change of user_data does not rebuild it"),
    },
    reported={
        "status": TEXT,
        "locked": BOOLEAN,
        "address": TEXT,
        "addresses": mapping("{network: [{addr, version, port, mac}]}"),
        "ports": listing("[{id, name}]", "of it, also those without an address, where the cloud tells"),
        "volumes": listing("[{id, delete_on_termination}]", "that are attached to it"),
        "fault": TEXT,
        "console_log": TEXT,
        "pid": Field(FieldType.INTEGER, "", "of the process, in the local cloud"),
        "host": Field(FieldType.TEXT, "", "the `hypervisor` that it is on, where the cloud shows that"),
        "fenced": listing("[COMPUTE|NETWORK|STORAGE]", "in the answer to `fence`: what is seen to be cut off now"),
        "not_fenced": mapping("{what: why}", "in the answer to `fence`: the rest of what was asked for"),
        "declared_down": Field(
            FieldType.TEXT,
            "",
            "in the answer to `fence`: its host, where that is declared down, by which it is cut off",
        ),
    },
    statuses=Statuses(
        ready=frozenset({"active"}),
        busy=frozenset(
            {"building", "deleting", "migrating", "rebooting", "rebuilding", "resizing", "starting", "unreachable"}
        ),
        broken={"error": Remedy.RECREATE, "soft_deleted": Remedy.RECREATE, "rescue": Remedy.MANUAL},
        operations={"lost": "reboot", "stopped": "start", "paused": "unpause", "suspended": "resume"},
        suspended=frozenset({"suspended"}),
    ),
    operations={
        "start": "",
        "stop": "",
        "reboot": "{type: SOFT|HARD}; softly by default, and hard if it is `lost`.",
        "pause": "",
        "unpause": "",
        "suspend": "Changes nothing if it is suspended.",
        "resume": "",
        "lock": "Changes nothing if it is locked.",
        "unlock": "",
        "rebuild": (
            "{image}: writes an image to its disk, by default the one that it has. It keeps its id, ports, addresses "
            "and volumes."
        ),
        "restore": "Brings back one that is `soft_deleted`; changes nothing at others.",
        "evacuate": (
            "{host, from}: brings it from a host that is down to the named one, or to any. Changes nothing if it has "
            "left the host `from`."
        ),
        "rescue": "{image, admin_pass}: boots it with a rescue image. Changes nothing if it is rescued.",
        "unrescue": "Changes nothing if it is not rescued.",
        "change_password": "{admin_pass}",
        "fence": (
            "{what: [COMPUTE, NETWORK, STORAGE], host_down}: cuts off its guest (powered off, or its host is declared "
            "down), its ports, its volumes; by default the guest. With `host_down: true` nothing is cut off unless its "
            "host is down. Of a server whose host is called down nothing is cut off as long as that is doubted, or no "
            "other host has room for another one. The answer says what is seen to be cut off; the rest is asked for "
            "again."
        ),
        "unfence": "{what}: brings up the ports that `fence` took down; what else it did is undone by others.",
        "snapshot": "See `Snapshots` of the port.",
        "adopt": "Takes over the `ports` that another service has made for it: they are deleted with it.",
    },
    snapshot_field="image",
    notes=(
        "A locked server refuses every change, its deletion, and every operation but lock, unlock and snapshot.",
        "A server whose `image` is the id of a snapshot gets the saved disk.",
        "Its `scheduler_hints` name a server group as `{group}`.",
        "A server that is `lost` should run, but its host does not know it.",
        "A server that is `soft_deleted` was deleted, and is kept for a while: deleting it once more removes it.",
        "A server that is `unreachable` goes on, or not, on a host that the cloud cannot ask for the time being.",
    ),
)

KINDS = (
    SERVER,
    Kind(
        "hypervisor",
        "A host of servers. It is only looked at; its id is its name.",
        reported={
            "name": TEXT,
            "state": Field(FieldType.TEXT, "up or down", "whether the cloud hears of it"),
            "status": Field(FieldType.TEXT, "enabled or disabled", "whether it takes new servers"),
            "forced_down": Field(FieldType.BOOLEAN, "", "whether it was declared down"),
            "reason": Field(FieldType.TEXT, "", "why it is disabled"),
            "updated_at": Field(
                FieldType.NUMBER, "", "when it was heard of last, in seconds since the epoch, where that is known"
            ),
            "blind": Field(FieldType.TEXT, "", "why it does not count that hosts are down; empty where it does"),
        },
        statuses=Statuses(ready=frozenset({"enabled"}), broken={"disabled": Remedy.MANUAL}),
        notes=("A cloud may show it to administrators only: to others it is unknown, never absent.",),
    ),
    Kind(
        "keypair",
        "A key pair that may log in to servers.",
        reported={"private_key": TEXT, "fingerprint": TEXT},
        id_field="name",
        creation_only=("private_key",),
    ),
    Kind(
        "server_group",
        "Servers that should share a host, or should not; they name it as the group in scheduler_hints.",
        reported={"members": listing("[id]")},
    ),
    Kind("flavor", "A size of servers that users may choose."),
    Kind("host_aggregate", "Compute hosts that have something in common."),
    Kind(
        "compute_quota", "The compute quota of a project.", notes=("Deleting one restores the defaults of the cloud.",)
    ),
    snapshot_kind(SERVER),
)
