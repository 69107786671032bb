"""Lists of the Clustering API are pages, by entries and by bytes, and the genuine client follows them to the end."""

from typing import Any

import httpx
import pytest

from homeostat.clustering.wire import lists

SPEC = {"type": "os.nova.server", "version": "1.0", "properties": {"name": "n", "flavor": "m1.tiny", "image": "cirros"}}


def profiles(senlin: httpx.Client, count: int, text: str = "") -> list[str]:
    found = []
    for number in range(count):
        body = {"profile": {"name": f"p{number:03}", "spec": SPEC, "metadata": {"text": text}}}
        answer = senlin.post("/profiles", json=body)
        assert answer.status_code == 201, answer.text
        found.append(answer.json()["profile"]["id"])
    return found


def walked(senlin: httpx.Client, path: str, name: str) -> list[list[dict[str, Any]]]:
    """All pages."""
    found, following = [], path
    while following:
        answer = senlin.get(following)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        found.append(body[name])
        following = body.get("links", {}).get("next", "")
        assert body.get("next", "") == following
    return found


def test_a_page_ends_where_it_becomes_long_and_the_client_goes_on(senlin: httpx.Client, api: Any) -> None:
    ids = profiles(senlin, 12, "x" * 900_000)
    pages = walked(senlin, "/profiles", "profiles")
    assert [each["id"] for page in pages for each in page] == ids
    assert len(pages) == 3
    assert [each.id for each in api.profiles()] == ids
    names = [each.name for each in api.profiles(sort="name:desc", limit=5)]
    assert names == sorted(names, reverse=True)
    assert len(names) == 12


def test_a_page_ends_after_its_entries(senlin: httpx.Client, api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "PAGE_MAX", 5)
    ids = profiles(senlin, 11)
    assert [len(page) for page in walked(senlin, "/profiles", "profiles")] == [5, 5, 1]
    assert [len(page) for page in walked(senlin, "/profiles?sort=name:desc&limit=7", "profiles")] == [5, 5, 1]
    assert [len(page) for page in walked(senlin, "/profiles?limit=4", "profiles")] == [4]  # asked on by the marker
    assert senlin.get("/profiles?limit=0").json() == {"profiles": []}
    assert [each.id for each in api.profiles()] == ids


def test_what_is_exactly_one_page_has_no_next_one(senlin: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "PAGE_MAX", 3)
    profiles(senlin, 3)
    assert "links" not in senlin.get("/profiles").json()


def test_rows_are_read_by_and_by(senlin: httpx.Client) -> None:
    """More than are read first, and a filter that no column has."""
    (profile,) = profiles(senlin, 1)
    for number in range(25):
        body = {"node": {"name": f"n{number:02}", "profile_id": profile}}
        assert senlin.post("/nodes", json=body).status_code == 202
    assert [each["name"] for each in senlin.get("/nodes?sort=name").json()["nodes"]] == [f"n{n:02}" for n in range(25)]
    shown = senlin.get("/nodes?status=INIT&status=CREATING&status=ACTIVE&limit=13").json()
    assert len(shown["nodes"]) == 13
    assert senlin.get("/nodes?status=ERROR").json() == {"nodes": []}
    assert len(senlin.get("/actions").json()["actions"]) == 25
