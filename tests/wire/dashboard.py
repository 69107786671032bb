"""What journeys through the dashboard share: reading the page in a browser, and judging it."""

from pathlib import Path

import pytest

from tests.chromium import Browser
from tests.waiting import until

AXE = Path(__file__).parents[2] / ".axe"


def text(browser: Browser) -> str:
    """What the page shows."""
    return str(browser.run("return document.body.innerText"))


def shows(browser: Browser, words: str) -> None:
    """Wait until the page shows these words."""
    until(lambda: words in text(browser), f"the page to show {words!r}; it shows {text(browser)!r:.800}")


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
