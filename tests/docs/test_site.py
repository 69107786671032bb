"""The documentation as a site: it builds without a warning, can be searched, and needs no other host."""

import json
import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

from homeostat.resources.registry import types
from tests.chromium import Browser
from tests.docs.pages import DOCS
from tests.waiting import until

pytestmark = pytest.mark.heavy

ROOT = DOCS.parent
FETCHED = re.compile(r"""<(?:script|img|link|iframe|source)\b[^>]*?\b(?:src|href)=["']?((?:https?:)?//[^"'\s>]+)""")
"""What a browser fetches by itself, from another host."""
IN_STYLES = re.compile(r"""(?:url\(|@import )\s*["']?((?:https?:)?//[^"')\s]+)""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `mkdocs build --strict` makes it: a warning about a link, an anchor or a page that is left out ends it."""
    directory = tmp_path_factory.mktemp("site")
    build(load_config(str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(directory)))
    return directory


def test_every_page_is_found_by_the_search(site: Path) -> None:
    index = json.loads((site / "search/search_index.json").read_text("utf-8"))
    found = {each["location"].partition("#")[0] for each in index["docs"]}
    assert found == {address(page) for page in DOCS.rglob("*.md")}
    texts = {each["title"]: each["text"] for each in index["docs"]}
    assert [name for name, kind in types().items() if not kind.support.hidden and name not in texts] == []


def address(page: Path) -> str:
    """Of a page's directory, below the root of the site."""
    path = page.relative_to(DOCS)
    below = path.parent if path.stem in ("index", "README") else path.with_suffix("")
    return "" if below == Path() else f"{below}/"


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    found = [
        (str(path.relative_to(site)), *pattern.findall(path.read_text("utf-8")))
        for ending, pattern in (("html", FETCHED), ("css", IN_STYLES), ("svg", IN_STYLES))
        for path in site.rglob(f"*.{ending}")
    ]
    assert len(found) > 300
    assert [each for each in found if len(each) > 1] == []


def test_what_would_be_fetched_is_found() -> None:
    assert FETCHED.findall('<script defer src="https://a.example/x.js"></script><a href="https://b.example/">')
    assert not FETCHED.findall('<a href="https://b.example/"><img src="../x.svg">')
    assert IN_STYLES.findall("@font-face { src: url(//fonts.example/x.woff) }")


# -- in a browser ------------------------------------------------------------------------------------------------------


class _Files(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Do not log requests."""


@pytest.fixture
def served(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Files, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.browser
def test_a_reader_searches_and_copies(served: str, browser: Browser) -> None:
    browser.visit(f"{served}/search.html?q=floatingipassociation")
    page = "/reference/resource-types/os-neutron-floatingipassociation/"
    links = (
        "return [...document.querySelectorAll('#mkdocs-search-results a')].map((each) => new URL(each.href).pathname)"
    )
    until(lambda: page in browser.run(links), "the search to find the page of the type")
    browser.visit(f"{served}{page}")
    browser.run("navigator.clipboard.writeText = async (text) => { window.copied = text; };")
    browser.click("button.copy")
    copied = browser.run("return window.copied")
    assert copied.startswith("heat_template_version")
    assert "type: OS::Neutron::FloatingIPAssociation\n" in copied
    browser.visit(f"{served}/tutorial/first-stack/")
    browser.run("navigator.clipboard.writeText = async (text) => { window.copied = text; };")
    browser.run("document.querySelector('code.language-console + button').click()")
    assert browser.run("return window.copied") == "homeostat up site.yaml\n"
    assert browser.troubles() == []
