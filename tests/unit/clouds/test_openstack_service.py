"""What the client of a service reads from answers and errors, without a service."""

from typing import Any, cast

import pytest
import requests
from keystoneauth1 import adapter, exceptions

from homeostat.clouds.identity.errors import Denied
from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.budget import Budget
from homeostat.clouds.openstack.outages import DOUBT_S, PATIENCE_S, SHARE, Outages
from homeostat.clouds.openstack.service import LATE_S, Service, _body, _error_text, _json, _next_page, _not_sent
from homeostat.model.errors import HomeostatError, Terminal, Transient, Uncertain


def answer(content: bytes, kind: str = "application/json", reason: str = "") -> requests.Response:
    made = requests.Response()
    made._content = content
    made.headers["Content-Type"] = kind
    made.reason = reason
    return made


@pytest.mark.parametrize(
    ("content", "body"),
    [(b"", {}), (b'{"a": 1}', {"a": 1}), (b"[1]", {"": [1]}), (b"oops", {"": None})],
)
def test_a_body(content: bytes, body: Any) -> None:
    assert _body(answer(content)) == body


def test_a_body_that_is_no_json() -> None:
    assert _json(answer(b"<html>")) is None


@pytest.mark.parametrize(
    ("content", "kind", "words"),
    [
        (b"<html><title>400</title><body><h1>Bad</h1>It&#39;s\n<br/>wrong</body></html>", "text/html", "It's wrong"),
        (b"It is wrong", "text/plain", "Bad Request"),
        (b"<html><title>400</title></html>", "text/html", "Bad Request"),
    ],
)
def test_words_without_json(content: bytes, kind: str, words: str) -> None:
    assert _error_text(answer(content, kind, "Bad Request")) == words


@pytest.mark.parametrize(
    ("page", "query"),
    [
        (
            {"ports": [], "ports_links": [{"rel": "next", "href": "http://x?limit=2&marker=m&other=1"}]},
            "limit marker",
        ),
        ({"links": {"next": "http://x/zones?marker=m"}}, "marker"),
        ({"next": "/v2/images?marker=m"}, "marker"),
        ({"ports_links": [{"rel": "previous", "href": "http://x?marker=m"}]}, ""),
        ({"links": {"self": "http://x", "next": None}}, ""),
        ({}, ""),
    ],
)
def test_the_next_page(page: dict[str, Any], query: str) -> None:
    assert sorted(_next_page(page, "ports")) == query.split()


def refused() -> Exception:
    try:
        requests.get("http://127.0.0.1:1/", timeout=5)
    except requests.ConnectionError as error:
        return error
    raise AssertionError("port 1 answers")


def test_what_never_reached_a_service_was_not_sent() -> None:
    error = exceptions.ConnectFailure("no")
    error.__cause__ = refused()
    assert _not_sent(error)
    assert not _not_sent(exceptions.ConnectFailure("no"))
    assert not _not_sent(requests.ReadTimeout("late"))
    loop = ValueError()
    loop.__cause__ = TypeError(loop)
    assert not _not_sent(loop)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (exceptions.ConnectFailure("Unable to connect to https://net:9696/v2.0/ports: oops"), "at https://net:9696: "),
        (exceptions.ConnectTimeout(), ": "),
    ],
)
def test_what_gave_no_answer_is_named_in_a_few_words(error: Exception, words: str) -> None:
    error.__cause__ = refused()
    listener = Listener()
    listener.answers.append(error)
    with pytest.raises(Transient, match=f"^network gave no answer ?{words}Connection refused$"):
        listener.service.get("/ports")


REQUEST_S = 45.0


class Listener:
    """A service whose next answers are known: an error where nothing listens."""

    def __init__(self) -> None:
        self.now = 0.0
        self.answers: list[requests.Response | Exception] = []
        self.timeouts: list[float | None] = []
        proxy = cast("adapter.Adapter", self)
        self.service = Service("network", "p", lambda: proxy, None, Budget(), Outages(REQUEST_S, lambda: self.now))

    def request(self, *_: Any, timeout: float | None = None, **__: Any) -> requests.Response:
        self.timeouts.append(timeout)
        found = self.answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def ask(self, method: str, code: int, content: bytes = b"{}") -> HomeostatError | None:
        """What a request comes to that is answered so; None for a success."""
        self.answers.append(said(code, content))
        try:
            self.service.request(method, "/networks")
        except HomeostatError as error:
            return error
        return None


def said(code: int, content: bytes = b"{}") -> requests.Response:
    made = answer(content)
    made.status_code = code
    return made


def away() -> Exception:
    error = exceptions.ConnectFailure("refused")
    error.__cause__ = refused()
    return error


def test_a_service_that_has_just_come_back_is_doubted() -> None:
    listener = Listener()
    listener.answers.append(away())
    with pytest.raises(Transient, match="network gave no answer"):
        listener.service.get("/networks")
    for method, code in (("GET", 200), ("GET", 404), ("POST", 403), ("DELETE", 404)):
        error = listener.ask(method, code)
        assert isinstance(error, Transient), (method, code)
        assert error.retry_after_s == DOUBT_S
    assert listener.ask("POST", 201) is None
    assert isinstance(listener.ask("POST", 400), Terminal)
    listener.now += DOUBT_S
    assert listener.ask("GET", 200) is None
    assert isinstance(listener.ask("GET", 404), Missing)
    assert isinstance(listener.ask("POST", 403), Terminal)


def test_a_proxy_answers_for_a_service_that_is_away() -> None:
    listener = Listener()
    assert isinstance(listener.ask("POST", 503, b"<html>No server is available</html>"), Uncertain)
    assert isinstance(listener.ask("GET", 404), Transient)


def test_a_service_that_fails_is_not_away() -> None:
    listener = Listener()
    assert isinstance(listener.ask("POST", 503), Uncertain)
    assert isinstance(listener.ask("GET", 404), Missing)


def test_a_request_that_was_broken_off_may_still_be_carried_out() -> None:
    listener = Listener()
    listener.answers = [requests.ConnectionError("the line broke")]
    with pytest.raises(Uncertain) as caught:
        listener.service.request("POST", "/networks")
    assert caught.value.late_s == LATE_S
    for code in (502, 504):
        error = listener.ask("POST", code, b"<html>upstream timed out</html>")
        assert isinstance(error, Uncertain)
        assert error.late_s == LATE_S


def test_a_request_that_the_service_itself_has_answered_is_over() -> None:
    listener = Listener()
    for code, content in ((500, b"{}"), (502, b"{}"), (504, b"{}"), (503, b"<html>No server is available</html>")):
        error = listener.ask("POST", code, content)
        assert isinstance(error, Uncertain)
        assert error.late_s == 0


def hangs() -> Exception:
    error = exceptions.ConnectTimeout("Request to http://net/networks timed out")
    error.__cause__ = requests.ReadTimeout("timed out")
    return error


def test_a_service_that_hangs_is_tried_by_one_request_at_a_time() -> None:
    listener = Listener()
    words = "^network gave no answer at http://net: timed out$"

    def look(*answers: requests.Response | Exception) -> None:
        listener.answers = list(answers)
        with pytest.raises(Transient, match=words):
            listener.service.get("/networks")
        assert not listener.answers

    look(hangs())
    for patience_s in (PATIENCE_S, 2 * PATIENCE_S, REQUEST_S / SHARE, REQUEST_S / SHARE):
        look(hangs())
        assert listener.timeouts[-1] == patience_s
        listener.now += patience_s
        look()
        listener.now += patience_s
    assert listener.ask("GET", 503) is not None
    assert listener.ask("GET", 200) is None
    assert listener.timeouts[-1] is None


def test_what_is_asked_of_a_service_that_hangs_has_all_the_time() -> None:
    listener = Listener()
    listener.answers = [hangs()]
    with pytest.raises(Uncertain):
        listener.service.request("POST", "/networks")
    assert listener.ask("POST", 201) is None
    assert listener.timeouts == [None, None]


def test_an_error_before_says_nothing_about_a_request() -> None:
    listener = Listener()
    listener.answers = [away(), requests.ConnectionError("the line broke")]
    try:
        listener.service.get("/networks")
    except Transient:
        with pytest.raises(Uncertain, match=r"^network gave no answer: the line broke$"):
            listener.service.request("POST", "/networks")


class Owners:
    """Tokens of the owners of stacks: another one after each that was refused, as long as there are some."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)
        self.asked: list[tuple[str, str]] = []

    def token(self, project: str, of: str = "") -> str:
        self.asked.append((project, of))
        if not self.tokens:
            raise Denied("the service has no valid trust")
        return self.tokens[0]

    def refused(self, token: str) -> None:
        self.tokens.remove(token)


class Admits:
    """A service that admits the holders of some tokens."""

    def __init__(self, owners: Owners, *admitted: str) -> None:
        self.sent: list[tuple[str, str]] = []
        self._admitted = admitted
        proxy = cast("adapter.Adapter", self)
        self.service = Service("network", "p", lambda: proxy, owners, Budget(), Outages(REQUEST_S))

    def request(self, path: str, method: str, **more: Any) -> requests.Response:
        assert more["authenticated"] is False
        token = more["headers"]["X-Auth-Token"]
        self.sent.append((method, token))
        return said(200 if token in self._admitted else 401)


def test_a_request_for_a_stack_is_sent_with_the_token_of_its_owner() -> None:
    owners = Owners("good")
    there = Admits(owners, "good")
    there.service.request("POST", "/networks", {}, of="token-1")
    assert there.sent == [("POST", "good")]
    assert owners.asked == [("p", "token-1")]


def test_a_token_that_is_refused_is_replaced_once() -> None:
    there = Admits(Owners("old", "new", "spare"), "new")
    there.service.request("POST", "/networks", {}, of="token-1")
    assert there.sent == [("POST", "old"), ("POST", "new")]
    stranger = Admits(Owners("old", "new", "spare"))
    with pytest.raises(Transient, match="the trust of the stack's owner"):
        stranger.service.request("POST", "/networks", {}, of="token-1")
    assert len(stranger.sent) == 2


@pytest.mark.parametrize("tokens", [(), ("old",)])
def test_without_a_trust_of_the_owner_everything_waits(tokens: tuple[str, ...]) -> None:
    there = Admits(Owners(*tokens))
    for method in ("POST", "PUT", "DELETE"):
        with pytest.raises(Transient, match=r"network: no credentials .*: the service has no valid trust"):
            there.service.request(method, "/networks", {}, of="token-1")
    assert len(there.sent) == len(tokens)
