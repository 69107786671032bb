"""The budget of an answer: what is too large is refused before it is sent, in the form of its API."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from homeostat.api.answer_limit import AnswerLimit
from homeostat.api.http.answer_budget import ANSWER_BYTES_MAX, HELD, LARGE_BYTES, AnswerBytes, HeldBytes
from homeostat.api.http.responses import Json, json_stream
from homeostat.json_pieces import Items
from homeostat.model.errors import Rejected, Transient

MEGA = 1024 * 1024
LONG = "x" * MEGA


def sent_by(app: ASGIApp, path: str = "/v1/p/stacks") -> list[Message]:
    """What a client gets."""
    found: list[Message] = []

    async def send(message: Message) -> None:
        found.append(message)

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": [], "state": {}}

    async def answered() -> None:
        await app(scope, receive, send)

    asyncio.run(answered())
    return found


def body_of(messages: list[Message]) -> bytes:
    return b"".join(each.get("body", b"") for each in messages)


def test_an_answer_is_refused_while_it_is_made() -> None:
    made = 0

    def items() -> Iterator[str]:
        nonlocal made
        while True:
            made += 1
            yield LONG

    with pytest.raises(Rejected, match=str(ANSWER_BYTES_MAX)) as refused:
        Json({"items": Items(items())}, remedy="ask for less")
    assert refused.value.fault == "RequestLimitExceeded"
    assert str(refused.value).endswith("ask for less")
    assert made <= ANSWER_BYTES_MAX // MEGA


def test_shared_values_count_as_often_as_they_are_written() -> None:
    with pytest.raises(Rejected):
        Json({"items": [{"text": LONG}] * 40})


def test_a_large_answer_is_sent_in_pieces_and_its_length_is_known() -> None:
    answer = Json({"items": [LONG] * 3})
    assert HELD.taken > LARGE_BYTES
    messages = sent_by(answer)
    assert len(messages) > 3
    assert dict(messages[0]["headers"])[b"content-length"] == b"%d" % len(body_of(messages))
    assert [each["more_body"] for each in messages[1:]] == [*[True] * (len(messages) - 2), False]
    assert HELD.taken == 0


def test_what_is_dropped_unsent_holds_nothing() -> None:
    answer = Json([LONG] * 2)
    assert HELD.taken
    del answer
    gc.collect()
    assert HELD.taken == 0


def test_large_answers_that_wait_have_one_limit_and_each_project_its_share() -> None:
    held = HeldBytes(10 * MEGA, 5 * MEGA)
    held.take("one", 5 * MEGA)
    with pytest.raises(Transient, match="this project"):
        held.take("one", 1)
    held.take("two", 5 * MEGA)
    with pytest.raises(Transient, match="this process"):
        held.take("three", 1)
    held.give_back("one", MEGA)
    held.take("three", MEGA)


def test_what_is_refused_has_given_back_all() -> None:
    held = HeldBytes()
    with pytest.raises(Rejected):
        AnswerBytes((b"x" * MEGA for _ in range(1000)), held=held)
    gc.collect()
    assert held.taken == 0


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("/v1/p/stacks", b'"traceback":null'),
        ("/clustering/v1/clusters", b'"code":400,"message"'),
        ("/v1", b"<Code>RequestLimitExceeded</Code>"),
    ],
)
def test_what_does_not_count_itself_is_weighed_on_its_way(path: str, word: bytes) -> None:
    messages = sent_by(AnswerLimit(PlainTextResponse("x" * (ANSWER_BYTES_MAX + 1))), path)
    assert messages[0]["status"] == 400
    assert b"RequestLimitExceeded" in body_of(messages)
    assert word in body_of(messages)


async def _endless() -> AsyncIterator[bytes]:
    while True:
        yield LONG.encode()


def test_what_has_begun_and_is_no_stream_is_cut_off() -> None:
    with pytest.raises(RuntimeError, match="outgrew"):
        sent_by(AnswerLimit(StreamingResponse(_endless())))


def test_streams_have_no_budget() -> None:
    count = ANSWER_BYTES_MAX // MEGA + 1

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await json_stream({"items": Items(LONG for _ in range(count))})(scope, receive, send)

    assert len(body_of(sent_by(AnswerLimit(app)))) > ANSWER_BYTES_MAX


def test_a_stream_that_fails_at_once_is_a_fault_and_later_is_cut() -> None:
    def failing(after: int) -> Iterator[str]:
        yield from (LONG for _ in range(after))
        raise Rejected("EntityNotFound", "gone")

    async def late(scope: Scope, receive: Receive, send: Send) -> None:
        await json_stream({"items": Items(failing(3))})(scope, receive, send)

    with pytest.raises(Rejected):
        json_stream({"items": Items(failing(0))})
    with pytest.raises(Rejected):
        sent_by(late)


def test_small_answers_are_as_before() -> None:
    content: Any = {"a": [1, None, True, "\u20ac"], 5: 2**70}
    assert sent_by(Json(content))[1]["body"] == b'{"a":[1,null,true,"\xe2\x82\xac"],"5":%d}' % 2**70
