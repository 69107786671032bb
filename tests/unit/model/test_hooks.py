"""Progress through hooks, as a row stores it."""

from typing import Any

import pytest

from homeostat.model import hooks
from homeostat.model.hooks import HookProgress

STORED: list[tuple[HookProgress, dict[str, Any]]] = [
    (HookProgress(2, "pre-create", 7.0), {"revision": 2, "at": "pre-create", "since": 7.0}),
    (HookProgress(2, cleared=("pre-update",)), {"revision": 2, "cleared": ["pre-update"]}),
    (HookProgress(3, due="post-create", of_deletion=("pre-delete",)),
     {"revision": 3, "due": "post-create", "leaving": ["pre-delete"]}),
    (HookProgress(of_deletion=("post-delete",)), {"leaving": ["post-delete"]}),
]  # fmt: skip


@pytest.mark.parametrize(("progress", "stored"), STORED)
def test_progress_is_stored_and_read_back(progress: HookProgress, stored: dict[str, Any]) -> None:
    assert hooks.dump(progress) == stored
    assert hooks.load(stored) == progress
