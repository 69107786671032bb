"""The files of the dashboard: what is sent, and by which rules a browser treats them."""

import gzip
import hashlib
import json
from pathlib import Path

import httpx
import pytest

from homeostat.api.dashboard import served_files
from tests.wire.running import Running

STATIC = Path(__file__).parents[2] / "src/homeostat/dashboard/static"
TRANSFERRED_MAX = 100_000
"""Bytes of the whole page, compressed."""


@pytest.fixture
def pages(service: Running) -> httpx.Client:
    return httpx.Client(base_url=f"{service.url}/dashboard/")


def test_the_page_may_load_nothing_from_elsewhere(pages: httpx.Client) -> None:
    answer = pages.get("")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    rules = answer.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self'" in rules
    assert "unsafe" not in rules
    assert "frame-ancestors 'none'" in rules
    assert answer.headers["x-content-type-options"] == "nosniff"
    for file in served_files().values():
        assert b"http://" not in file.plain.replace(b"http://www.w3.org/", b"")
        assert b"https://" not in file.plain


@pytest.mark.parametrize("name", sorted(served_files()))
def test_each_file_is_served_compressed_and_asked_for_once(name: str, pages: httpx.Client) -> None:
    answer = pages.get(name, headers={"Accept-Encoding": "gzip"})
    assert (answer.status_code, answer.headers["content-encoding"]) == (200, "gzip")
    assert answer.content == (STATIC / name).read_bytes()
    again = pages.get(name, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    plain = pages.get(name, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.content == answer.content


@pytest.mark.parametrize("name", ["nothing.js", "../__init__.py", "%2e%2e/__init__.py", "vendor/vendor.json", "vendor"])
def test_nothing_else_is_served(name: str, pages: httpx.Client) -> None:
    assert pages.get(name).status_code == 404


def test_its_address_without_a_slash_leads_to_it(service: Running) -> None:
    answer = httpx.get(f"{service.url}/dashboard")
    assert (answer.status_code, answer.headers["location"]) == (308, "dashboard/")


def test_the_whole_page_is_small() -> None:
    assert sum(len(each.packed) for each in served_files().values()) < TRANSFERRED_MAX
    assert all(gzip.decompress(each.packed) == each.plain for each in served_files().values())


def test_the_libraries_are_those_that_are_noted() -> None:
    noted = json.loads((STATIC / "vendor/vendor.json").read_text(encoding="utf-8"))
    there = {each.name for each in (STATIC / "vendor").iterdir()} - {"vendor.json"}
    assert noted["files"].keys() == there
    for name, digest in noted["files"].items():
        assert digest == f"sha256-{hashlib.sha256((STATIC / 'vendor' / name).read_bytes()).hexdigest()}"
    assert {f"{name.rpartition('/')[2]}.LICENSE" for name in noted["packages"]} <= there
