"""Notices that something is due, to every process on a database (ADR 0051).

PostgreSQL distributes them itself (LISTEN, NOTIFY). For an SQLite file, each listening process has a named pipe. A
notice carries no data and may be lost, since the rows are the truth: a waiting thread also reads the rows from time to
time.
"""

import contextlib
import errno
import logging
import os
import select
import stat
import threading
import uuid
from collections.abc import Callable, Generator, Iterator
from typing import Any, Protocol

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import SQLAlchemyError

LOG = logging.getLogger(__name__)
CHANNEL = "homeostat_due"
LOOK_S = 0.02
"""Time between reads of the rows while no notices can be received."""
LONGEST_WAIT_S = 2.0
"""Time between reads of the rows while notices are received, since a notice may be lost."""
STOP_S = 2.0
"""Time within which a listening thread notices a request to stop, unless a notice wakes it earlier."""
AGAIN_S = 1.0
"""Pause after a failure before listening again."""
_FLAG = "homeostat_due"


def mark_due(tx: Connection) -> None:
    """Mark that something becomes due with this transaction: a notice is sent to all processes after the commit."""
    tx.info[_FLAG] = True


def take_flag(tx: Connection) -> bool:
    """Return whether this transaction made something due, and clear the mark.

    The mark is stored with the connection, which the pool reuses for other transactions.
    """
    return bool(tx.info.pop(_FLAG, False))


class Channel(Protocol):
    """The transport of notices between processes."""

    def send(self) -> None: ...

    def receive(self, stopped: Callable[[], bool], open_: Callable[[], None]) -> Iterator[None]:
        """Yield once for each notice, until `stopped()`; call `open_` as soon as no notice can be missed any more."""
        ...

    def close(self) -> None: ...


class Notices:
    """The notices of a database.

    Args:
        channel: The transport to other processes; None if no other process can use the database.
    """

    def __init__(self, channel: Channel | None) -> None:
        self._channel = channel
        self._listeners: dict[object, Callable[[], None]] = {}
        self._connected = threading.Event()
        self._warned: set[str] = set()

    @property
    def connected(self) -> bool:
        """Whether notices of all processes are received here."""
        return self._channel is None or self._connected.is_set()

    def longest_wait_s(self) -> float:
        """Return after how many seconds without a notice a waiting thread should read the rows."""
        return LONGEST_WAIT_S if self.connected else LOOK_S

    def notify(self) -> None:
        """Send a notice to all listeners, here and in other processes.

        Never fails: due work is in the rows, and found without a notice, too.
        """
        # A copy: other threads begin and end listening meanwhile.
        for listener in list(self._listeners.values()):
            listener()
        self._send()

    def _send(self) -> None:
        try:
            if self._channel is not None:
                self._channel.send()
        except OSError as error:
            self._warn_once(
                "other processes do not get the notice that something is due: they find it when they look", error
            )

    def _warn_once(self, problem: str, error: Exception) -> None:
        """Log a problem as a warning only the first time: it may recur many times a second."""
        LOG.log(logging.DEBUG if problem in self._warned else logging.WARNING, "%s: %s", problem, error)
        self._warned.add(problem)

    @contextlib.contextmanager
    def listening(self, listener: Callable[[], None]) -> Iterator[None]:
        """Call `listener` for each notice during the block.

        Any thread may call it, so it should only set an event.
        """
        me, stop = object(), threading.Event()
        self._listeners[me] = listener
        thread = threading.Thread(target=self._listen, args=(listener, stop), name="notices", daemon=True)
        if self._channel is not None:
            thread.start()
        try:
            yield
        finally:
            del self._listeners[me]
            stop.set()
            if self._channel is not None:
                self._send()  # wakes the thread, which then sees `stop`
                thread.join(timeout=2 * STOP_S)

    def _listen(self, listener: Callable[[], None], stop: threading.Event) -> None:
        assert self._channel is not None
        while not stop.is_set():
            try:
                for _ in self._channel.receive(stop.is_set, self._connected.set):
                    listener()
                    self._warned.clear()
            except (OSError, SQLAlchemyError) as error:
                self._warn_once(f"no notices come in, work is looked for every {LOOK_S} s", error)
            except Exception:
                LOG.exception("no notices come in, work is looked for every %s s", LOOK_S)
            self._connected.clear()
            stop.wait(AGAIN_S)

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()


class Pipes:
    """A named pipe for each listening process, in a directory next to the database.

    Args:
        directory: Created by the first process that listens.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def send(self) -> None:
        """Write to the pipes of all listening processes; never blocks.

        Raises:
            OSError: At least one pipe could not be written to. The others were.
        """
        try:
            names = os.listdir(self._directory)
        except FileNotFoundError:  # no process has ever listened
            return
        failed: list[OSError] = []
        for name in names:
            if not name.startswith("."):
                try:
                    self._ring(f"{self._directory}/{name}")
                except OSError as error:
                    failed.append(error)
        if failed:
            raise failed[0]

    def _ring(self, path: str) -> None:
        try:
            pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError as error:
            if error.errno == errno.ENXIO:  # the pipe has no reader: its process died without removing it
                _remove(path)
            elif error.errno != errno.ENOENT:  # ENOENT: its process has stopped listening meanwhile
                raise
            return
        try:
            # Nothing is written into a regular file that happens to be in the directory.
            if stat.S_ISFIFO(os.fstat(pipe).st_mode):
                os.write(pipe, b"\n")
        except BlockingIOError:  # a full pipe holds unread notices, and one is as good as many
            pass
        except BrokenPipeError:  # its process died between open and write
            _remove(path)
        finally:
            os.close(pipe)

    def receive(self, stopped: Callable[[], bool], open_: Callable[[], None]) -> Generator[None, None, None]:
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        name = uuid.uuid4().hex  # process ids are not unique if several containers share the directory
        hidden, path = f"{self._directory}/.{name}", f"{self._directory}/{name}"
        os.mkfifo(hidden, mode=0o600)
        # Opened for writing, too: without a writer, the pipe would be at its end, and `poll` would return at once.
        pipe = os.open(hidden, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            # Visible only now, with a reader: senders remove pipes without a reader.
            os.rename(hidden, path)
            open_()
            yield from self._read(pipe, path, stopped)
        finally:
            with contextlib.suppress(FileNotFoundError):
                # Only its own pipe: another file may have its name by now.
                if os.path.samestat(os.stat(path), os.fstat(pipe)):
                    _remove(path)
            os.close(pipe)

    def _read(self, pipe: int, path: str, stopped: Callable[[], bool]) -> Iterator[None]:
        """Yield once for each readable notice, until `stopped()`.

        Raises:
            OSError: The pipe was removed or replaced: senders cannot find it any more.
        """
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        while not stopped():
            if poll.poll(STOP_S * 1000):
                os.read(pipe, 4096)
                yield
            elif not os.path.samestat(os.stat(path), os.fstat(pipe)):
                raise FileExistsError(errno.EEXIST, "another file is in the place of a pipe", path)

    def close(self) -> None: ...


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


class Sender:
    """Sends notices of this process in a thread, combining several into one.

    Args:
        deliver: Sends a notice; an error of the database means a lost notice.
    """

    def __init__(self, deliver: Callable[[], None]) -> None:
        self._deliver = deliver
        self._wanted = threading.Event()
        self._stopped = False
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def send(self) -> None:
        self._wanted.set()
        if self._thread is None:
            with self._starting:
                if self._thread is None and not self._stopped:
                    self._thread = threading.Thread(target=self._send, name="notices-out", daemon=True)
                    self._thread.start()

    def close(self) -> None:
        self._stopped = True
        self._wanted.set()

    def _send(self) -> None:
        while True:
            self._wanted.wait()
            if self._stopped:
                return
            # Cleared before sending: a request that comes while this one is sent needs another notice.
            self._wanted.clear()
            try:
                self._deliver()
            except SQLAlchemyError as error:
                LOG.debug("a notice is lost: %s", error)
            except Exception:
                LOG.exception("a notice is lost")


class Notifications:
    """Notices by PostgreSQL's NOTIFY, sent by a thread.

    A NOTIFY inside the writing transactions would serialise all their commits, since PostgreSQL takes a lock on the
    whole database for it.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sender = Sender(self._notify)

    def send(self) -> None:
        self._sender.send()

    def _notify(self) -> None:
        with self._connection() as connection:
            connection.execute(text(f"NOTIFY {CHANNEL}"))

    def _connection(self) -> Connection:
        return self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")

    def receive(self, stopped: Callable[[], bool], open_: Callable[[], None]) -> Iterator[None]:
        with self._connection() as connection:
            connection.execute(text(f"LISTEN {CHANNEL}"))
            driver: Any = connection.connection.driver_connection
            # A connection pooler may swallow notifications. So this process sends a first one, and calls `open_` when
            # it has arrived.
            self.send()
            try:
                while not stopped():
                    for _ in driver.notifies(timeout=STOP_S, stop_after=1):
                        yield
                        open_()
            except self._engine.dialect.loaded_dbapi.Error as error:
                raise ConnectionError(error) from error
            finally:
                connection.invalidate()  # it still listens, so it must not return to the pool

    def close(self) -> None:
        self._sender.close()
