"""Notices that something is due, to every process on one database.

PostgreSQL passes them on itself (LISTEN, NOTIFY). Beside an SQLite file each process that listens has a named pipe.
A notice carries no data (law 1), and may be lost: everybody who waits for one looks from time to time, too.
"""

import contextlib
import errno
import logging
import os
import select
import stat
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import SQLAlchemyError

LOG = logging.getLogger(__name__)
CHANNEL = "homeostat_due"
LOOK_S = 0.02
"""How often whoever waits looks where no notices come in."""
LONGEST_WAIT_S = 2.0
"""How often where they do, since one may be lost."""
STOP_S = 2.0
"""A thread that listens finds out within this time that it is to stop; with the next notice where one comes in."""
AGAIN_S = 1.0
"""So long after a failure notices are listened for again."""
_FLAG = "homeostat_due"


def due(tx: Connection) -> None:
    """Something becomes due with this transaction: everybody is told once it is committed."""
    tx.info[_FLAG] = True


def take_flag(tx: Connection) -> bool:
    """Did this transaction make something due? Asked once, since the connection goes on to the next transaction."""
    return bool(tx.info.pop(_FLAG, False))


class Channel(Protocol):
    """The way from process to process."""

    def send(self) -> None: ...

    def receive(self, stopped: Callable[[], bool], open_: Callable[[], None]) -> Iterator[None]:
        """One item a notice. `open_` is called as soon as none is missed any more; ends once `stopped()`."""
        ...

    def close(self) -> None: ...


class Notices:
    """Of one database. Takes: channel — to other processes, None where there can be none."""

    def __init__(self, channel: Channel | None) -> None:
        self._channel = channel
        self._listeners: dict[object, Callable[[], None]] = {}
        self._heard = threading.Event()
        self._warned: set[str] = set()

    @property
    def heard(self) -> bool:
        """Do notices of all processes come in here?"""
        return self._channel is None or self._heard.is_set()

    def longest_wait_s(self) -> float:
        """After so many seconds without a notice whoever waits should look."""
        return LONGEST_WAIT_S if self.heard else LOOK_S

    def tell(self) -> None:
        """Something is due. Never fails: what is due is in the rows, and found without a notice, too."""
        for news in list(self._listeners.values()):
            news()
        self._send()

    def _send(self) -> None:
        try:
            if self._channel is not None:
                self._channel.send()
        except OSError as error:
            self._warn_once("other processes are not told that something is due, they find it when they look", error)

    def _warn_once(self, problem: str, error: Exception) -> None:
        """The same problem may come back many times a second."""
        LOG.log(logging.DEBUG if problem in self._warned else logging.WARNING, "%s: %s", problem, error)
        self._warned.add(problem)

    @contextlib.contextmanager
    def listening(self, news: Callable[[], None]) -> Iterator[None]:
        """Meanwhile `news` is called for each notice, from any thread: it should only set an event."""
        me, stop = object(), threading.Event()
        self._listeners[me] = news
        thread = threading.Thread(target=self._listen, args=(news, stop), name="notices", daemon=True)
        if self._channel is not None:
            thread.start()
        try:
            yield
        finally:
            del self._listeners[me]
            stop.set()
            if self._channel is not None:
                self._send()
                thread.join(timeout=2 * STOP_S)

    def _listen(self, news: Callable[[], None], stop: threading.Event) -> None:
        assert self._channel is not None
        while not stop.is_set():
            try:
                for _ in self._channel.receive(stop.is_set, self._heard.set):
                    news()
                    self._warned.clear()
            except (OSError, SQLAlchemyError) as error:
                self._warn_once(f"no notices come in, work is looked for every {LOOK_S} s", error)
            except Exception:
                LOG.exception("no notices come in, work is looked for every %s s", LOOK_S)
            self._heard.clear()
            stop.wait(AGAIN_S)

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()


class Pipes:
    """A named pipe for each process that listens, in a directory beside the database.

    Takes: directory — is made by the first who listens.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def send(self) -> None:
        """A pipe that is full has unread notices already; one that nobody reads belonged to a process that died.

        Fails: OSError.
        """
        try:
            names = os.listdir(self._directory)
        except FileNotFoundError:
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
            if error.errno == errno.ENXIO:
                _remove(path)
            elif error.errno != errno.ENOENT:
                raise
            return
        try:
            if stat.S_ISFIFO(os.fstat(pipe).st_mode):
                os.write(pipe, b"\n")
        except BlockingIOError:
            pass
        except BrokenPipeError:
            _remove(path)
        finally:
            os.close(pipe)

    def receive(self, stopped: Callable[[], bool], open_: Callable[[], None]) -> Iterator[None]:
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        name = uuid.uuid4().hex  # process ids are not unique where several containers share the directory
        hidden, path = f"{self._directory}/.{name}", f"{self._directory}/{name}"
        os.mkfifo(hidden, mode=0o600)
        # Opened for writing, too: it never comes to its end when those who write go.
        pipe = os.open(hidden, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.rename(hidden, path)  # who sees it finds somebody who reads
            open_()
            yield from self._read(pipe, path, stopped)
        finally:
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.stat(path), os.fstat(pipe)):
                    _remove(path)
            os.close(pipe)

    def _read(self, pipe: int, path: str, stopped: Callable[[], bool]) -> Iterator[None]:
        """Fails: OSError when somebody has removed the pipe, or put something else in its place."""
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        while not stopped():
            if poll.poll(STOP_S * 1000):
                os.read(pipe, 4096)
                yield
            elif not os.path.samestat(os.stat(path), os.fstat(pipe)):
                raise FileExistsError(errno.EEXIST, "somebody has put something else in the place of a pipe", path)

    def close(self) -> None: ...


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


class Notifications:
    """PostgreSQL's own.

    They are sent by a thread, several at once as one: in the transactions themselves they would make all of them commit
    one after the other.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._wanted = threading.Event()
        self._stopped = False
        self._sender: threading.Thread | None = None
        self._starting = threading.Lock()

    def send(self) -> None:
        self._wanted.set()
        if self._sender is None:
            with self._starting:
                if self._sender is None and not self._stopped:
                    self._sender = threading.Thread(target=self._send, name="notices-out", daemon=True)
                    self._sender.start()

    def _send(self) -> None:
        while True:
            self._wanted.wait()
            if self._stopped:
                return
            self._wanted.clear()
            try:
                with self._connection() as connection:
                    connection.execute(text(f"NOTIFY {CHANNEL}"))
            except SQLAlchemyError as error:
                LOG.debug("a notice is lost: %s", error)
            except Exception:
                LOG.exception("a notice is lost")

    def _connection(self) -> Connection:
        return self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")

    def receive(self, stopped: Callable[[], bool], open_: Callable[[], None]) -> Iterator[None]:
        with self._connection() as connection:
            connection.execute(text(f"LISTEN {CHANNEL}"))
            driver: Any = connection.connection.driver_connection
            self.send()  # a pooler between may swallow them: the first one that comes in proves that they do
            try:
                while not stopped():
                    for _ in driver.notifies(timeout=STOP_S, stop_after=1):
                        yield
                        open_()
            except self._engine.dialect.loaded_dbapi.Error as error:
                raise ConnectionError(error) from error
            finally:
                connection.invalidate()  # nobody else is to have a connection that listens

    def close(self) -> None:
        self._stopped = True
        self._wanted.set()
