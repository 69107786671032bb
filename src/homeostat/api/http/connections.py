"""One client connection, from its first byte to its last.

Clients that are too slow, or do not speak HTTP, are disconnected. Bodies are limited by the application
(`api.middleware`), heads and idle connections here. Streams last as long as they are read.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from homeostat.api.http import faults
from homeostat.api.http.connection_shares import ConnectionShares, Network
from homeostat.api.http.peers import uid_of_peer

PEER = "peer_uid"
"""Key in a request's state: user id of the process at the other end of its connection, or None."""
NOT_YET_ANSWERED = (h11.IDLE, h11.SEND_RESPONSE)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits for client connections.

    Attributes:
        head_s: From the first byte of a request, or the start of the connection, to the end of the request's head.
        body_s: To the end of the request's body.
        stalled_s: Time within which a client must read some of the data sent to it.
        connections_max: Connections of one API process; one address gets half of them.
    """

    head_s: float = 30.0
    body_s: float = 60.0
    stalled_s: float = 60.0
    connections_max: int = 2000


def protocol(patience: Timeouts, *, needs_peer: bool = False, proxies: Sequence[Network] = ()) -> Any:
    """Return the value for `http` in uvicorn's settings.

    Args:
        needs_peer: Put the connecting process's user id into the state of each request as `PEER`, if known.
        proxies: See `ConnectionShares`.
    """
    return partial(Connection, patience, needs_peer, ConnectionShares(patience.connections_max, proxies))


class Connection(H11Protocol):
    """uvicorn's HTTP/1.1 protocol with time limits for slow clients."""

    def __init__(self, patience: Timeouts, needs_peer: bool, shares: ConnectionShares, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._patience = patience
        self._needs_peer = needs_peer
        self._shares = shares
        self._owed: Any = h11.IDLE
        self._awaiting: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if not self._shares.enter(self, self.client[0] if self.client else ""):
            self._refuse(503, "ServiceUnavailable", "Too many connections; try again later.")
            return
        if self._needs_peer:
            self.app_state = {**self.app_state, PEER: uid_of_peer(transport.get_extra_info("socket"))}
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._shares.leave(self)
        self._stop_awaiting()
        self._stop_timer()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()
        self._note_owed()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._note_owed()

    def make_room(self) -> None:
        """Close this connection for another, with a 503 unless the connection is idle between two requests."""
        if self.cycle is not None and self.cycle.response_complete:
            self.timeout_keep_alive_handler()
        else:
            self._refuse(503, "ServiceUnavailable", "Too many connections wait for their clients; try again later.")

    def _note_owed(self) -> None:
        owed = self.conn.their_state
        if owed is not self._owed:
            self._owed = owed
            self._shares.note(self, owes=owed in (h11.IDLE, h11.SEND_BODY))

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start_timer(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self._stop_timer()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        if self.transport.get_write_buffer_size():  # never read by the client; `close` would wait for ever
            self.transport.abort()
        else:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Refuse the request, and wake a handler that still waits for its body."""
        self._refuse(400, "HTTPBadRequest", "This is no HTTP request, or not its whole body, or its head is too long.")

    def _watch(self) -> None:
        """Run the timer while the client owes the head of a request, or a body that no handler reads."""
        client_state = self.conn.their_state
        unread = client_state is h11.SEND_BODY and self.conn.our_state not in (*NOT_YET_ANSWERED, h11.SEND_BODY)
        if client_state is not h11.IDLE and not unread:
            self._stop_awaiting()
        elif self._awaiting is None:
            self._awaiting = self.loop.call_later(self._patience.head_s, self._give_up)

    def _give_up(self) -> None:
        self._awaiting = None
        limit = f"{self._patience.head_s:g} s"
        self._refuse(408, "RequestTimeout", f"The head of a request has to arrive within {limit}.")

    def _refuse(self, code: int, kind: str, message: str) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            # A handler may be waiting for the rest of a body that will not arrive.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if not self.transport.is_closing() and self.conn.our_state in NOT_YET_ANSWERED:
            retry = {"Retry-After": str(faults.RETRY_AFTER_S)} if code == HTTPStatus.SERVICE_UNAVAILABLE else None
            answer = faults.fault(code, kind, message, retry)
            caching = (b"cache-control", faults.CACHING.encode())
            headers = [*answer.raw_headers, caching, (b"x-content-type-options", b"nosniff"), (b"connection", b"close")]
            reason = HTTPStatus(code).phrase.encode()
            for event in (
                h11.Response(status_code=code, headers=headers, reason=reason),
                h11.Data(data=bytes(answer.body)),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _start_timer(self, waiting: int) -> None:
        """Check again after `stalled_s` whether the client has read anything.

        Args:
            waiting: Bytes that the client has not taken yet.
        """
        self._stalled = self.loop.call_later(self._patience.stalled_s, self._look, waiting)

    def _look(self, before: int) -> None:
        waiting = self.transport.get_write_buffer_size()
        # Writing is paused meanwhile, so only the client's reading changes the size.
        if waiting >= before:
            self.transport.abort()
        else:
            self._start_timer(waiting)

    def _stop_awaiting(self) -> None:
        if self._awaiting is not None:
            self._awaiting.cancel()
            self._awaiting = None

    def _stop_timer(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
