"""The page of a stack in a real browser: how soon it is there, what it loads, how soon after an event it changes."""

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
from sqlalchemy import Engine, create_engine, text
from tests.chromium import Browser, browsing

from bench.databases import database_url
from bench.figures import Figure, quantiles
from bench.serving import serving, url_of
from bench.shapes import SHAPES

PATIENCE_S = 900.0
CHANGES = 20
"""Resources that are marked unhealthy, one after the other."""
SHOWN = """
    while (!document.querySelector("main table, main .picture svg")) await new Promise(requestAnimationFrame);
    return performance.now();
"""
PAINTED = "return performance.getEntriesByName('first-contentful-paint')[0].startTime"
LOADED = """
    const all = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
    return all.reduce((sum, each) => sum + each.transferSize, 0);
"""
NOTE = """
    window.drawn = {};
    const note = () => {
      for (const each of document.querySelectorAll("ol.events li strong")) {
        window.drawn[each.textContent] ??= Date.now() / 1000;
      }
    };
    note();
    new MutationObserver(note).observe(document.getElementById("app"), {subtree: true, childList: true});
"""
"""Keeps when the first event of each resource was drawn."""
LAST = text("SELECT min(at) FROM event WHERE name = :name AND at > :since")


def pages(n: int, database: str) -> Iterator[Figure]:
    """The page of a stack of n resources (a thousand at most), and that of a group of n members."""
    with database_url(database) as url, serving(url) as state, tempfile.TemporaryDirectory() as folder:
        project = url_of(state)
        with (
            httpx.Client(base_url=project, timeout=PATIENCE_S, follow_redirects=True) as http,
            browsing(Path(folder)) as browser,
            contextlib.closing(_Events(url)) as events,
        ):
            for shape, count in (("independent", min(n, 1000)), ("group", n)):
                stack = _created(http, shape, count)
                address = f"{project.partition('/v1/')[0]}/dashboard/#/{project.rpartition('/')[2]}/stacks/{stack}"
                for page in ("", "/picture"):
                    name = f"page.{shape}.{page.strip('/') or 'overview'}"
                    yield from _loaded(browser, name, f"{address}{page}", count, database)
                seconds = list(_drawn_after(browser, http, events, stack, f"{address}/events", count))
                yield from quantiles(f"page.{shape}.drawn_after_event", seconds, count, database)


def _created(http: httpx.Client, shape: str, count: int) -> str:
    """Return name and id of the stack; of a group, those of its nested stack."""
    template = SHAPES[shape].request(count).template
    made = http.post("/stacks", json={"stack_name": shape, "template": template})
    made.raise_for_status()
    path = f"{shape}/{made.json()['stack']['id']}"
    ends_at = time.monotonic() + PATIENCE_S
    while (status := http.get(f"/stacks/{path}").json()["stack"]["stack_status"]) != "CREATE_COMPLETE":
        if status.endswith("FAILED") or time.monotonic() > ends_at:
            raise RuntimeError(f"{shape} is {status}")
        time.sleep(1.0)
    if shape == "group":
        (group,) = http.get(f"/stacks/{path}/graph").json()["graph"]["resources"]
        path = f"{group['nested']['stack_name']}/{group['nested']['stack_id']}"
    return path


def _loaded(browser: Browser, name: str, address: str, n: int, database: str) -> Iterator[Figure]:
    browser.visit("about:blank")
    browser.visit(address)
    shown_ms = browser.run(SHOWN)
    yield Figure(f"{name}.first_paint", browser.run(PAINTED), "ms", n, database)
    yield Figure(f"{name}.shown", shown_ms, "ms", n, database)
    yield Figure(f"{name}.loaded", browser.run(LOADED) / 1000, "kB", n, database)


class _Events:
    """The events in a database, with their exact times."""

    def __init__(self, url: str) -> None:
        self._engine: Engine = create_engine(url)

    def first(self, name: str, since: float) -> float:
        with self._engine.connect() as connection:
            return float(connection.execute(LAST, {"name": name, "since": since}).scalar_one())

    def close(self) -> None:
        self._engine.dispose()


def _drawn_after(
    browser: Browser, http: httpx.Client, events: _Events, stack: str, address: str, n: int
) -> Iterator[float]:
    """Yield for each of some resources how long after its event it was drawn, in seconds."""
    browser.visit("about:blank")
    browser.visit(address)
    browser.run("while (!document.querySelector('ol.events li')) await new Promise(requestAnimationFrame);")
    known = set(browser.run(f"{NOTE} return Object.keys(window.drawn)"))
    prefix = "" if "group" in stack else "r"
    names = [name for name in (f"{prefix}{number}" for number in range(n)) if name not in known]
    for name in names[:CHANGES]:
        since = time.time()
        http.patch(f"/stacks/{stack}/resources/{name}", json={"mark_unhealthy": True}).raise_for_status()
        wanted = "while (!(arguments[0] in window.drawn)) await new Promise(requestAnimationFrame);"
        drawn = browser.run(f"{wanted} return window.drawn[arguments[0]]", name)
        yield drawn - events.first(name, since)
