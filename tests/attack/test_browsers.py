"""Borrowed browsers: what pages of others have a user's browser send to a service on the user's own machine.

The requests are written down as browsers send them (Chrome 130 and Firefox 131 with all their headers; "old" ones
without the headers Sec-Fetch-*, and without Origin where they sent none); a browser runs in `test_browsing`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

import bcrypt
import httpx
import pytest

from homeostat.api.access.auth import BasicAccess, NoAccess
from homeostat.model.errors import Rejected
from homeostat.store import schema
from homeostat.store.database import Database
from tests.attack.owned import FIELDS, LINK, STACK
from tests.wire.running import database, serving

SIGNED = {"AWSAccessKeyId": "default", "SignatureVersion": "2", "SignatureMethod": "HmacSHA256", "Signature": "x"}
SIGNED_LINK = f"/v1/?{urlencode(FIELDS | SIGNED, quote_via=quote)}"
FORM, PLAIN, JSON = "application/x-www-form-urlencoded", "text/plain;charset=UTF-8", "application/json"
EVIL = "http://evil.example"
FROM = {"Origin": EVIL, "Referer": f"{EVIL}/"}
FIREFOX = {
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:131.0) Gecko/20100101 Firefox/131.0",
    "Accept": "*/*",
    "Accept-Language": "en-US,en;q=0.5",
    "Accept-Encoding": "gzip, deflate, br, zstd",
}
CHROME = {
    "sec-ch-ua": '"Chromium";v="130", "Google Chrome";v="130", "Not?A_Brand";v="99"',
    "sec-ch-ua-mobile": "?0",
    "sec-ch-ua-platform": '"Linux"',
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Safari/537.36",
    "Accept": "*/*",
}


def fetched(site: str, mode: str, target: str = "empty") -> dict[str, str]:
    return {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": target}


@dataclass(frozen=True)
class Attack:
    """One request. host — that the browser asks for: the service's own where it is empty."""

    what: str
    method: str = "POST"
    path: str = "/v1/default/stacks"
    content: str = STACK
    headers: Mapping[str, str] = field(default_factory=dict)
    host: str = ""


def form(what: str, headers: Mapping[str, str], path: str = "/v1/") -> Attack:
    return Attack(what, path=path, content=urlencode(FIELDS), headers={"Content-Type": FORM, **headers})


def link(what: str, headers: Mapping[str, str], path: str = LINK) -> Attack:
    return Attack(what, "GET", path, "", headers)


NAVIGATION = fetched("cross-site", "navigate", "document")
ATTACKS = (
    # 1. a body that needs no preflight: fetch(url, {method: "POST", mode: "no-cors", body: text})
    Attack("a text", headers={**CHROME, "Content-Type": PLAIN, **FROM, **fetched("cross-site", "no-cors")}),
    Attack("a text by an old browser", headers={**FIREFOX, "Content-Type": PLAIN, **FROM}),
    Attack("a text by one that tells nothing", headers={**FIREFOX, "Content-Type": PLAIN}),
    Attack("a blob, which has no type", headers={**FIREFOX, **FROM, **fetched("cross-site", "no-cors")}),
    Attack("JSON, were the preflight passed by", headers={**CHROME, "Content-Type": JSON, **FROM}),
    Attack("JSON of a page in a sandbox or a file", headers={**CHROME, "Content-Type": JSON, "Origin": "null"}),
    Attack(
        "JSON of another server of this machine",
        headers={**CHROME, "Content-Type": JSON, "Origin": "http://127.0.0.1:1", **fetched("same-site", "cors")},
    ),
    # 2. DNS rebinding: the page's own name has become 127.0.0.1, so it is the same origin to the browser
    Attack(
        "a rebound name",
        headers={**CHROME, "Content-Type": JSON, "Origin": EVIL, **fetched("same-origin", "cors")},
        host="evil.example",
    ),
    Attack("a rebound name reads", "GET", content="", headers={**CHROME}, host="evil.example:8004"),
    Attack("a name that only begins like an address", headers={"Content-Type": JSON}, host="127.0.0.1.evil.example"),
    # 3. <form method="post" action="http://127.0.0.1:8004/v1/">, sent by a script as soon as the page is there
    form("a form", {**CHROME, **FROM, **NAVIGATION}),
    form("a form by an old browser", {**FIREFOX, **FROM}),
    form("a form in a sandbox", {**FIREFOX, "Origin": "null"}),
    form("a form with what looks like a signature", {**FIREFOX, **FROM}, f"/v1/?{urlencode(SIGNED)}"),
    # 4. <img src="…">, and links in pages and mails
    link("an image", {**CHROME, "Referer": f"{EVIL}/", **fetched("cross-site", "no-cors", "image")}),
    link("an image by an old browser", {**FIREFOX, "Referer": f"{EVIL}/"}),
    link("a link in a page", {**CHROME, **NAVIGATION, "Sec-Fetch-User": "?1"}),
    link("a link in a mail", {**CHROME, **fetched("none", "navigate", "document"), "Sec-Fetch-User": "?1"}),
    link("a link with what looks like a signature", {**FIREFOX, **fetched("none", "navigate")}, SIGNED_LINK),
    link("a link below the project", {**CHROME, **NAVIGATION}, "/v1/default/stacks"),
)


def sent(url: str, attack: Attack, more: Mapping[str, str]) -> httpx.Response:
    host = {"Host": attack.host} if attack.host else {}
    with httpx.Client() as plain:
        request = httpx.Request(attack.method, f"{url}{attack.path}", content=attack.content.encode() or None)
        request.headers = httpx.Headers({"Host": url.removeprefix("http://"), **attack.headers, **host, **more})
        if attack.content:
            request.headers["Content-Length"] = str(len(attack.content.encode()))
        return plain.send(request)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with database(tmp_path_factory.mktemp("browsers")) as found:
        yield found


@pytest.fixture(scope="module")
def url(db: Database) -> Iterator[str]:
    """A service without access control."""
    with serving(db, NoAccess()) as found:
        yield found


def assert_refused(answer: httpx.Response, db: Database) -> None:
    assert answer.status_code in (400, 403), answer.text
    assert "access-control-allow-origin" not in answer.headers
    assert "owned" not in answer.text
    with db.read() as tx:
        assert tx.execute(schema.stack.select()).all() == []


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.what)
def test_no_page_of_others_may_send_requests(attack: Attack, url: str, db: Database) -> None:
    assert_refused(sent(url, attack, {}), db)


def test_preflight_requests_are_refused(url: str, db: Database) -> None:
    """The preflight of a request with application/json."""
    wanted = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    preflight = Attack("", "OPTIONS", content="", headers={**CHROME, **FROM, **wanted})
    answer = sent(url, preflight, {})
    assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert_refused(answer, db)


def test_the_refusal_names_the_remedy(url: str) -> None:
    rebound = httpx.get(f"{url}/v1/default/stacks", headers={"Host": "evil.example"})
    assert rebound.json()["error"]["type"] == "Forbidden"
    assert "answers at addresses such as 127.0.0.1, not at 'evil.example'" in rebound.json()["error"]["message"]
    linked = httpx.get(f"{url}{LINK}")
    assert "CreateStack needs POST" in linked.text


@pytest.mark.parametrize(
    "host", ["[::1", "[::1]]", "user@127.0.0.1", "127.0.0.1/x", "127.0.0.1:x", "127.1", "", "ℓocalhost"]
)
def test_a_host_that_is_none_is_refused(host: str) -> None:
    with pytest.raises(Rejected, match="answers at addresses such as"):
        NoAccess().check_way({"host": host}, None)


@pytest.mark.parametrize("origin", ["http://[", "null", "", "http://127.0.0.1℀", "http://127.0.0.1.evil.example", "x"])
def test_an_origin_that_is_none_is_refused(origin: str) -> None:
    with pytest.raises(Rejected, match="Web pages of others"):
        NoAccess().check_way({"host": "127.0.0.1", "origin": origin}, None)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:80", "127.8.9.1:8004", "localhost:8004", "LocalHost", "[::1]:1"]
)
def test_the_machine_itself_may_send_requests(host: str, url: str) -> None:
    for headers in ({}, {"Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}):
        answer = httpx.get(f"{url}/v1/default/stacks", headers={"Host": host, **headers})
        assert answer.status_code == 200, answer.text


def test_public_routes_are_open_and_a_signed_address_proves_itself(url: str) -> None:
    foreign = {"Host": "evil.example", "Origin": EVIL}
    assert httpx.get(f"{url}/healthcheck", headers=foreign).status_code == 200
    assert httpx.get(f"{url}/", headers=foreign).status_code == 300
    signed = f"{url}/v1/waitcondition/arn:openstack:heat::p:stacks/s/1/resources/r"
    unsigned = httpx.put(signed, content=b'{"Status": "SUCCESS"}', headers={"Host": "10.0.0.1"})
    assert "its signature does not fit" in unsigned.text


# -- with passwords, which a browser remembers and sends again ---------------------------------------------------------


@pytest.fixture(scope="module")
def with_passwords(db: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    users = tmp_path_factory.mktemp("users") / "users"
    users.write_text(f"ada:{bcrypt.hashpw(b'x', bcrypt.gensalt(4)).decode()}:default\n")
    with serving(db, BasicAccess(users)) as found:
        yield found


REMEMBERED = {"Authorization": httpx.BasicAuth("ada", "x")._auth_header}
REBINDING = {"a rebound name", "a rebound name reads", "a name that only begins like an address"}
"""A browser sends a password to the name alone for which it was given."""


@pytest.mark.parametrize(
    "attack", [each for each in ATTACKS if each.what not in REBINDING], ids=lambda attack: attack.what
)
def test_no_page_of_others_may_use_a_remembered_password(attack: Attack, with_passwords: str, db: Database) -> None:
    assert_refused(sent(with_passwords, attack, REMEMBERED), db)


def test_a_service_with_passwords_may_have_any_name(with_passwords: str) -> None:
    answer = httpx.get(f"{with_passwords}/v1/default/stacks", headers={"Host": "heat.example.org", **REMEMBERED})
    assert answer.status_code == 200
