"""Time limit of a request: a single deadline, and the part of the time spent waiting for the peer."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore


class RequestTime(threading.local):
    """Deadline of the current request of a thread, and the seconds spent waiting for the peer."""

    ends_at = waited_s = 0.0

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic

    def left_s(self) -> float:
        """Return the seconds until the deadline.

        Raises:
            TimeoutError: The deadline has passed.
        """
        left_s = self.ends_at - self._monotonic()
        if left_s <= 0:
            raise TimeoutError
        return left_s

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the duration of the body as waiting for the peer."""
        began = self._monotonic()
        try:
            yield
        finally:
            self.waited_s += self._monotonic() - began


class TimedStream(httpcore.NetworkStream):
    """A stream with a single deadline for all reads and writes, so no server can prolong a request byte by byte."""

    def __init__(self, stream: httpcore.NetworkStream, time: RequestTime) -> None:
        self._stream, self._time = stream, time

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        left_s = self._time.left_s()
        with self._time.waiting():
            return self._stream.read(max_bytes, left_s)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        left_s = self._time.left_s()
        with self._time.waiting():
            self._stream.write(buffer, left_s)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left_s = self._time.left_s()
        with self._time.waiting():
            return TimedStream(self._stream.start_tls(ssl_context, server_hostname, left_s), self._time)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
