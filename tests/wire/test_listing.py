"""The stack list: order, pages, filters, tags."""

from collections.abc import Iterator

import httpx
import pytest

from homeostat.api.access.auth import NoAccess
from homeostat.api.app import Limits
from homeostat.api.server import ApiSettings
from tests.wire import templates
from tests.wire.running import Running, serving, settled

EMPTY = "heat_template_version: 2018-08-31"
TAGS = {"a": "red", "b": "red,blue", "c": "blue,dark blue", "d": None, "e": ["_%", "Red"]}


@pytest.fixture(scope="module")
def listed(service: Running) -> Iterator[httpx.Client]:
    """Five complete stacks a to e with tags, and f that failed."""
    with httpx.Client(base_url=service.endpoint("listing")) as http:
        for name, tags in TAGS.items():
            body = {"stack_name": name, "template": EMPTY, "tags": tags, "disable_rollback": name != "b"}
            created = http.post("stacks", json={**body, "timeout_mins": 7 if name == "c" else None})
            settled(http, created.json()["stack"]["id"], status="CREATE_COMPLETE")
        created = http.post("stacks", json={"stack_name": "f", "template": templates.FAILING, "tags": "secret"})
        settled(http, created.json()["stack"]["id"], status="CREATE_FAILED")
        yield http


def names(http: httpx.Client, query: str) -> str:
    return "".join(each["stack_name"] for each in http.get(f"stacks?{query}").json()["stacks"])


@pytest.mark.parametrize(
    ("query", "expected", "reason"),
    [
        ("", "fedcba", "newest first"),
        ("sort_dir=asc", "abcdef", "oldest first"),
        ("sort_keys=stack_name", "abcdef", "ascending when only the key is given"),
        ("sort_keys=stack_name&sort_dir=desc", "fedcba", "descending"),
        ("sort_keys=stack_status&sort_keys=stack_name&sort_dir=desc", "fedcba", "by two keys"),
        ("sort_keys=nonsense", "fedcba", "unknown keys are dropped"),
        ("name=c", "c", "one name"),
        ("name=c&name=a", "ca", "one of two names"),
        ("name=c&stack_name=a", "", "both cannot be"),
        ("status=FAILED", "f", "a bare status"),
        ("status=CREATE_FAILED", "f", "action and status"),
        ("status=UPDATE_FAILED", "", "another action"),
        ("status=COMPLETE&status=FAILED", "fedcba", "one of two"),
        ("action=CREATE&name=a", "a", "two filters"),
        ("disable_rollback=false", "b", "a boolean"),
        ("timeout_mins=7", "c", "a number"),
        ("tenant=other", "", "another project"),
        ("owner_id=nobody", "", "no parent"),
        ("tags=red", "ba", "with a tag; tags differ by case"),
        ("tags=red,blue", "b", "with both"),
        ("tags_any=red,blue", "cba", "with one"),
        ("not_tags=red,blue", "fedca", "not with both"),
        ("not_tags_any=red,blue", "fed", "with neither"),
        ("tags=dark blue", "c", "a tag with a space"),
        ("tags=blu", "", "part of a tag is none"),
        ("tags=_%25", "e", "no wildcards"),
        ("nonsense=1", "fedcba", "unknown parameters are ignored"),
        ("limit=0", "fedcba", "no limit"),
        ("limit=2", "fe", "a page"),
        ("marker=nobody", "fedcba", "an unknown marker counts as none"),
    ],
)
def test_which_stacks(listed: httpx.Client, query: str, expected: str, reason: str) -> None:
    assert names(listed, query) == expected, reason


@pytest.mark.parametrize(
    "order",
    ["", "sort_keys=stack_name", "sort_keys=stack_status&sort_dir=desc", "sort_keys=updated_time", "sort_dir=asc"],
)
def test_pages_hold_every_stack_once(listed: httpx.Client, order: str) -> None:
    whole = names(listed, order)
    url: str | None = f"stacks?limit=2&with_count=true&{order}"
    found = ""
    while url is not None:
        body = listed.get(url).json()
        assert body["count"] == 6
        assert len(body["stacks"]) <= 2
        found += "".join(each["stack_name"] for each in body["stacks"])
        url = next((each["href"] for each in body.get("links", []) if each["rel"] == "next"), None)
    assert found == whole
    assert sorted(found) == list("abcdef")


def test_detail_reads_no_parameters(listed: httpx.Client) -> None:
    stacks = listed.get("stacks/detail?limit=1").json()["stacks"]
    assert "".join(each["stack_name"] for each in stacks) == "fedcba"
    assert {each["description"] for each in stacks} == {""}


def test_hidden_stacks(service: Running, listed: httpx.Client) -> None:
    settings = ApiSettings(limits=Limits(hidden_tags=("secret",)))
    with serving(service.db, NoAccess(), settings) as url, httpx.Client(base_url=f"{url}/v1/listing") as http:
        assert names(http, "") == "edcba"
        assert names(http, "show_hidden=true") == "fedcba"
        assert len(http.get("stacks/detail").json()["stacks"]) == 5
