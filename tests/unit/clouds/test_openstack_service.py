"""What the client of a service reads from answers and errors, without a service."""

from typing import Any

import pytest
import requests
from keystoneauth1 import exceptions

from homeostat.clouds.openstack.service import _body, _json, _next_page, _not_sent, _plain_words


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
    assert _plain_words(answer(content, kind, "Bad Request")) == words


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
