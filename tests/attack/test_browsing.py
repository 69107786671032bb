"""Borrowed browsers, with a real one: pages of others try to use a service of real processes, as the user who runs it.

What older browsers send, and Firefox, is written down in `test_browsers`.
"""

import json
from collections.abc import Iterator

import pytest

from tests.attack.owned import FIELDS, LINK, STACK, TEMPLATE
from tests.attack.service import Attacked, create, delete, ended
from tests.chromium import EVIL, Browser, pages
from tests.waiting import until

pytestmark = pytest.mark.browser
PROJECT = "default"
STACKS = f"/v1/{PROJECT}/stacks"
WAITING = {
    "heat_template_version": "2021-04-16",
    "resources": {
        "handle": {"type": "OS::Heat::WaitConditionHandle", "properties": {"signal_transport": "CFN_SIGNAL"}},
        "condition": {
            "type": "OS::Heat::WaitCondition",
            "properties": {"handle": {"get_resource": "handle"}, "timeout": 3600},
        },
    },
    "outputs": {"signal": {"value": {"get_attr": ["handle", "signal"]}}},
}

ANSWER = ".then(answer => answer.text(), String);"
READ = "const [url] = arguments; return fetch(url)" + ANSWER
ARGUMENTS = "const [url, body] = arguments;"
SENT = {
    "a text": ARGUMENTS + "return fetch(url, {method: 'POST', mode: 'no-cors', body})" + ANSWER,
    "a blob, which has no type": (
        ARGUMENTS + "return fetch(url, {method: 'POST', mode: 'no-cors', body: new Blob([body])})" + ANSWER
    ),
    "JSON, after a preflight request": (
        ARGUMENTS + "return fetch(url, {method: 'POST', headers: {'Content-Type': 'application/json'}, body})" + ANSWER
    ),
    "a text from a sandbox, which has no origin": ARGUMENTS
    + """
        const frame = document.createElement("iframe");
        frame.sandbox = "allow-scripts";
        frame.srcdoc = `<script>
            fetch(${JSON.stringify(url)}, {method: "POST", mode: "no-cors", body: ${JSON.stringify(body)}})
                .then(() => "answered", String).then(outcome => parent.postMessage(outcome, "*"));
            </script>`;
        const outcome = new Promise(resolve => addEventListener("message", event => resolve(event.data)));
        document.body.append(frame);
        return outcome;
    """,
}
"""Each sends `body` to `url`, and ends when that is answered or the browser refuses to go on."""
SUBMITTED = """
    const [url, enctype, fields] = arguments;
    const form = document.createElement("form");
    Object.assign(form, {method: "post", action: url, enctype});
    for (const [name, value] of Object.entries(fields)) {
        const field = document.createElement("textarea");
        Object.assign(field, {name, value});
        form.append(field);
    }
    document.body.append(form);
    form.submit();
"""
FORMS = {
    "a form": ("/v1/", "application/x-www-form-urlencoded", FIELDS),
    "a form that reads like JSON": (STACKS, "text/plain", {f'{STACK[:-1]}, "tags": "': '"}'}),
}


@pytest.fixture
def service(attacked: Attacked) -> Iterator[Attacked]:
    """The user has one stack, `mine`. Whatever else was made is gone afterwards."""
    with attacked.client(PROJECT) as http:
        if not stacks_of(attacked):
            ended(http, create(http, "mine", {**TEMPLATE, "resources": {}}).json()["stack"]["id"])
        yield attacked
        for stack in http.get("stacks").json()["stacks"]:
            if stack["stack_name"] != "mine":
                delete(http, stack["id"])


@pytest.fixture(scope="module")
def foreign() -> Iterator[int]:
    """Port at which others serve their pages."""
    with pages() as port:
        yield port


def stacks_of(service: Attacked) -> list[str]:
    with service.client(PROJECT) as http:
        return sorted(each["stack_name"] for each in http.get("stacks").json()["stacks"])


def named(service: Attacked, host: str) -> str:
    """Address of the service by this name."""
    return f"http://{host}:{service.service.url.rpartition(':')[2]}"


@pytest.fixture(params=[(EVIL, "127.0.0.1"), ("localhost", "localhost")], ids=["of elsewhere", "of this machine"])
def url(request: pytest.FixtureRequest, browser: Browser, service: Attacked, foreign: int) -> str:
    """The browser shows a page of others, from elsewhere or from another server of this machine, which is the same
    site to the browser. Gives the address of the service."""
    host, target = request.param
    browser.visit(f"http://{host}:{foreign}/")
    return named(service, target)


@pytest.mark.parametrize("what", SENT)
def test_no_page_of_others_may_send(what: str, url: str, browser: Browser, service: Attacked) -> None:
    browser.run(SENT[what], f"{url}{STACKS}", STACK)
    assert stacks_of(service) == ["mine"]


def test_no_image_makes_anything(url: str, browser: Browser, service: Attacked) -> None:
    browser.run(
        """
        const image = new Image();
        image.src = arguments[0];
        await new Promise(resolve => { image.onload = image.onerror = resolve; });
        """,
        f"{url}{LINK}",
    )
    assert stacks_of(service) == ["mine"]


@pytest.mark.parametrize("what", FORMS)
def test_no_page_of_others_may_submit(what: str, url: str, browser: Browser, service: Attacked) -> None:
    path, enctype, fields = FORMS[what]
    browser.run(SUBMITTED, f"{url}{path}", enctype, fields)
    until(lambda: browser.address == f"{url}{path}", "the answer to the form")
    assert stacks_of(service) == ["mine"]
    assert "Web pages of others may not ask here" in browser.run("return document.body.innerText")


def test_no_link_makes_anything(url: str, browser: Browser, service: Attacked) -> None:
    browser.run(
        "document.body.innerHTML = '<a>a prize</a>'; document.querySelector('a').href = arguments[0];",
        f"{url}{LINK}",
    )
    browser.click("a")
    until(lambda: browser.address.startswith(url), "the answer to the link")
    assert stacks_of(service) == ["mine"]


def test_no_page_of_others_may_read(url: str, browser: Browser) -> None:
    """The browser keeps from it what the service has not opened to it, and the service refuses it besides."""
    assert "mine" not in browser.run(READ, f"{url}{STACKS}")


@pytest.fixture(params=[EVIL, "evil.localhost"])
def rebound(request: pytest.FixtureRequest, browser: Browser, service: Attacked) -> str:
    """The browser shows a page whose name means this machine by now: to the browser it is of one origin with the
    service, and may do everything. Gives the address of both."""
    address = named(service, request.param)
    browser.visit(address)
    assert browser.run("return location.origin") == address
    return address


def test_no_rebound_name_may_read(rebound: str, browser: Browser) -> None:
    answer = browser.run(READ, f"{rebound}{STACKS}")
    assert "mine" not in answer
    assert "Without access control the service answers at addresses such as 127.0.0.1" in answer


@pytest.mark.parametrize("what", SENT)
def test_no_rebound_name_may_send(what: str, rebound: str, browser: Browser, service: Attacked) -> None:
    browser.run(SENT[what], f"{rebound}{STACKS}", STACK)
    assert stacks_of(service) == ["mine"]


# -- what goes on working: it was the service that refused, not the way there that was barred --------------------------


def test_the_user_may_look(browser: Browser, service: Attacked) -> None:
    browser.visit(f"{service.service.url}{STACKS}")
    assert '"mine"' in browser.run("return document.body.innerText")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_page_of_the_service_may_send_requests(host: str, browser: Browser, service: Attacked) -> None:
    browser.visit(named(service, host))
    assert "mine" in browser.run(READ, STACKS)
    browser.run(SENT["JSON, after a preflight request"], STACKS, STACK)
    assert stacks_of(service) == ["mine", "owned"]


def test_a_page_of_others_may_signal_where_it_was_given_a_signed_address(
    url: str, browser: Browser, service: Attacked
) -> None:
    with service.client(PROJECT) as http:
        stack_id = create(http, "waits", WAITING).json()["stack"]["id"]

        def signal_address() -> str | None:
            """JSON, once the handle is there."""
            value: str | None = http.get(f"stacks/{stack_id}").json()["stack"]["outputs"][0]["output_value"]
            return value

        signed = json.loads(until(signal_address, "the signed address"))["alarm_url"]
        browser.run(SENT["a text"], signed, "")
        assert ended(http, stack_id)["stack_status"] == "CREATE_COMPLETE"
