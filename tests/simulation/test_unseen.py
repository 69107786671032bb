"""The ring in clouds that do not report all that they have: descriptions of volumes and metadata of servers are as
secret as passwords. What a look cannot compare has to be right by what was sent alone, however updates overtake each
other, are cancelled, rolled back, lost and sent late. `HOMEOSTAT_SEEDS=1000` plays more."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from homeostat.clouds.port import Answer, Change, Creation
from homeostat.model.observed import Observation
from tests.simulation.playing import Ring, seeds_to_play
from tests.simulation.trouble import troubled
from tests.simulation.watched import WatchedCloud
from tests.simulation.wavering import Wavering

pytestmark = pytest.mark.heavy

UNSEEN = {"volume": "description", "server": "metadata"}
"""Kind -> the field that it has and does not report."""


class QuietCloud(WatchedCloud):
    """A cloud whose things have a field that it takes and never tells; nobody else changes it."""

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        return [_without_unseen(kind, each) for each in super().observe(kind, handles)]

    def find(self, kind: str, tokens: Sequence[str]) -> list[Observation]:
        return [_without_unseen(kind, each) for each in super().find(kind, tokens)]

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        return [_without_unseen(kind, each) for each in super().create(kind, intents)]

    def update(self, kind: str, changes: Sequence[Change]) -> list[Answer]:
        """As clouds do, it takes on what the request names, and nothing else of what is desired."""
        named = [replace(each, spec={name: each.spec.get(name) for name in each.changed}) for each in changes]
        return [_without_unseen(kind, each) for each in super().update(kind, named)]

    def change(self, handle: str, **fields: Any) -> None:
        super().change(handle, **_seen(handle, fields))

    def pin(self, handle: str, **fields: Any) -> None:
        """It keeps what it does not show: no look could find that it does not."""
        super().pin(handle, **_seen(handle, fields))


def _seen(handle: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != UNSEEN.get(handle.rpartition("-")[0])}


def _without_unseen(kind: str, answer: Any) -> Any:
    if not isinstance(answer, Observation) or kind not in UNSEEN:
        return answer
    return replace(answer, properties=_seen(answer.handle, answer.properties))


RING = Ring("unseen", lambda seed: troubled(seed, Wavering(), cloud_type=QuietCloud))


@pytest.mark.parametrize("seed", seeds_to_play(8))
def test_what_no_look_shows_is_as_it_was_wanted_last(seed: int) -> None:
    RING.played(seed)
