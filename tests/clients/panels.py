"""What a person does with the panels of Horizon, in a real browser."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.chromium import Browser
from tests.waiting import until

AT_REST = """
const found = document.querySelector(arguments[0]);
if (!found) return false;
found.scrollIntoView({block: "center", behavior: "instant"});
const place = () => { const at = found.getBoundingClientRect(); return [at.x, at.y, at.width, at.height]; };
const before = place();
await new Promise((done) => setTimeout(done, 50));
const [x, y, width, height] = place();
const top = document.elementFromPoint(x + width / 2, y + height / 2);
return before.join() === [x, y, width, height].join() && top !== null && (found === top || found.contains(top));
"""
"""Can it be clicked: is it there, and neither moving nor hidden by something else?"""


@dataclass(frozen=True, slots=True)
class Panels:
    """address — of Horizon."""

    browser: Browser
    address: str

    def log_in(self, name: str, password: str) -> None:
        """As the only one: what the browser knows of others is forgotten."""
        # A picture asks for nothing more: no answer that is on its way brings a cookie back.
        self.browser.visit(f"{self.address}/static/dashboard/img/logo.svg")
        self.browser.forget()
        self.browser.visit(f"{self.address}/auth/login/")
        self.write("username", name)
        self.write("password", password)
        self.click("#loginBtn")
        self.shows("Launch Stack")

    def open(self, panel: str) -> None:
        """One of the dashboard `project`."""
        self.browser.visit(f"{self.address}/project/{panel}/")

    def open_stack(self, name: str, tab: str) -> None:
        """A tab of the details of a stack, as its link has it."""
        self.open("stacks")
        self.click(f"#stacks tr[data-display='{name}'] td a")
        self.click(f"[href='?tab=stack_details__{tab}']")

    def click(self, selector: str) -> None:
        self._until(lambda: bool(self.browser.run(AT_REST, selector)), f"{selector} to be there for a click")
        self.browser.click(selector)

    def write(self, name: str, text: str) -> None:
        """Into the field of this name."""
        self.click(f"#id_{name}")
        self.browser.run("document.querySelector(arguments[0]).select()", f"#id_{name}")
        self.browser.write(f"#id_{name}", text)

    def give(self, name: str, value: str) -> None:
        """One of a list, or the path of a file, to the field of this name."""
        there = "return document.querySelector(arguments[0]) !== null"
        self._until(lambda: bool(self.browser.run(there, f"#id_{name}")), f"the field {name} to be there")
        self.browser.write(f"#id_{name}", value)

    def choose(self, name: str, value: str) -> None:
        """One of the values of a menu that is Horizon's own."""
        field = f".themable-select:has(#id_{name})"
        self.click(f"{field} button")
        self.click(f"{field} [data-select-value='{value}']")

    def submit(self, form: str) -> None:
        self.click(f"#{form} [type=submit]")

    def act_on(self, action: str, *stacks: str) -> None:
        """What is above the table of stacks, for those of these names. Deletions have to be confirmed."""
        self.open("stacks")
        for name in stacks:
            self.click(f"#stacks tr[data-display='{name}'] .multi_select_column label")
        if action == "delete":
            self.click("#stacks__action_delete")
            self.click(".modal.in .modal-footer .btn-danger")
        else:
            self.click("#stacks .table_actions_menu .dropdown-toggle")
            self.click(f"#stacks__action_{action}")

    def choose_action(self, stack: str, action: str) -> None:
        """From the menu in the row of a stack."""
        row = f"#stacks tr[data-display='{stack}']"
        self.click(f"{row} .dropdown-toggle")
        self.click(f"{row} [id$='__action_{action}']")

    @property
    def text(self) -> str:
        return str(self.browser.run("return document.body.innerText"))

    def shows(self, words: str) -> None:
        self._until(lambda: words in self.text, f"the page to show {words!r}")

    def _until(self, ask: Callable[[], bool], what: str) -> None:
        """As `until`; fails with what the page shows then."""
        try:
            until(ask, what)
        except AssertionError as late:
            raise AssertionError(f"{late}; it shows {self.text!r:.2000}") from None
