"""What journeys through the dashboard share: reading the page in a browser, and judging it."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.chromium import Browser
from tests.waiting import until
from tests.wire.running import settled

AXE = Path(__file__).parents[2] / ".axe"


def text(browser: Browser) -> str:
    """What the page shows."""
    return str(browser.run("return document.body.innerText"))


def awaits(browser: Browser, ask: Callable[[], bool], what: str) -> None:
    """Wait for a condition of the page; fail with what the page shows then."""
    try:
        until(ask, what)
    except AssertionError as error:
        raise AssertionError(f"{error}; the page shows {text(browser)!r:.2000}") from error


def shows(browser: Browser, words: str) -> None:
    """Wait until the page shows these words."""
    awaits(browser, lambda: words in text(browser), f"the page to show {words!r}")


def push(browser: Browser, name: str) -> None:
    """Push the page's button of this name, once it can be pushed."""
    _click(browser, f"//button[not(ancestor::dialog)][not(@disabled)][{_named(name)}]")


def confirm(browser: Browser, name: str) -> None:
    """Push the button of this name in the question that is open, and see it done."""
    _click(browser, f"//dialog[@open]//button[not(@disabled)][{_named(name)}]")
    awaits(browser, lambda: not browser.has("dialog[open]"), f"{name} to be done")


def fill(browser: Browser, label: str, value: str) -> None:
    """Type over what the visible field of this label has."""
    _click(browser, f"//label[starts-with(normalize-space(), '{label}')][not(ancestor::dialog[not(@open)])]//input")
    browser.run("document.activeElement.select()")
    browser.press(*value)


def _named(name: str) -> str:
    return f"@aria-label='{name}' or (not(@aria-label) and normalize-space()='{name}')"


def _click(browser: Browser, path: str) -> None:
    awaits(browser, lambda: browser.has(path), f"the page to have {path}")
    browser.click(path)


def watched(http: httpx.Client, recovery: Mapping[str, Any]) -> str:
    """Make the stack `watched`: a group of two servers whose status a health policy polls. Gives name and id."""
    member = {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "f"}}
    polled = {"interval": 60, "node_update_timeout": 0, "detection_modes": [{"type": "NODE_STATUS_POLLING"}]}
    health = {"target": {"get_resource": "workers"}, "detection": polled, "recovery": recovery}
    resources = {
        "workers": {"type": "OS::Heat::ResourceGroup", "properties": {"count": 2, "resource_def": member}},
        "health": {"type": "Homeostat::HealthPolicy", "properties": health},
    }
    template = {"heat_template_version": "wallaby", "resources": resources}
    made = http.post("/stacks", json={"stack_name": "watched", "template": template}).json()["stack"]["id"]
    settled(http, "watched")
    return f"watched/{made}"


def take_picture(browser: Browser, name: str) -> None:
    """Keep what the page shows for the documentation, in the folder that `HOMEOSTAT_SCREENSHOTS` names, if any."""
    folder = os.environ.get("HOMEOSTAT_SCREENSHOTS")
    if folder:
        browser.resize(1200, 800)
        (Path(folder) / f"dashboard-{name}.png").write_bytes(browser.screenshot())


def check_accessibility(browser: Browser) -> None:
    """Fail where those who do not see the page cannot use it, or it is wider than the screen. Skip without axe-core."""
    files = sorted(AXE.glob("axe-*.js"))
    if not files:
        pytest.skip("axe-core is not there: scripts/axe")
    browser.run(f"if (!window.axe) {{ {files[-1].read_text(encoding='utf-8')} }}")
    found = browser.run("return (await axe.run()).violations.map((each) => [each.id, each.impact, each.nodes[0].html])")
    assert found == [], found
    wide = browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, "nothing is beside the screen"
