"""Detached processes of the local cloud: starting them, checking whether they live, ending them with their children.

A process belongs to a directory: its environment, and that of its children, has `HOMEOSTAT_GUEST=<directory>`. Liveness
is the record lock that `guest.py` holds; unlike a process id, a lock cannot be confused with another process.
"""

import contextlib
import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from homeostat.model.errors import Transient

MARK = "HOMEOSTAT_GUEST"
DENIED = "HOMEOSTAT_DENIED"
"""See `guest.py`, which removes it from the environment."""
GUEST = Path(__file__).with_name("guest.py")
FORWARDER = Path(__file__).with_name("forwarder.py")
_FLOCK = "hhqqi"
"""Layout of struct flock: type, whence, start, length, pid."""
_LAUNCH_S = 20.0
_KILL_S = 10.0
_BREATH_S = 0.02
"""Seconds that a forked process needs to become another program."""


@dataclass(frozen=True, slots=True)
class Life:
    pid: int
    booted: bool


def life(directory: str) -> Life | None:
    """Return the process that lives in a directory; None if absent."""
    try:
        descriptor = os.open(f"{directory}/alive", os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 2, 0)
        kind, _, _, length, pid = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
    finally:
        os.close(descriptor)
    return None if kind == fcntl.F_UNLCK else Life(pid, booted=length == 2)


def launch(directory: str, environment: Mapping[str, str], program: Path | None = None) -> int:
    """Start a detached process in `directory`, and return its id once it has booted.

    The caller must prevent a second start meanwhile.

    Raises:
        Transient: The process does not come up.
    """
    command = [sys.executable, "-I", "-S", str(GUEST), directory, *([str(program)] if program else [])]
    inherited = {name: os.environ[name] for name in ("PATH", "LANG", "TZ") if name in os.environ}
    child = subprocess.Popen(
        command,
        env={"PATH": os.defpath, **inherited, **environment, MARK: directory},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert child.stdout is not None
    poll = select.poll()
    poll.register(child.stdout, select.POLLIN)
    with child:
        if not poll.poll(_LAUNCH_S * 1000):
            child.kill()
            end([directory])
        reported = child.stdout.read()
    if not reported:
        raise Transient(f"no process came up in {directory}; see its console.log")
    return int(reported)


def belonging(directories: Collection[str]) -> dict[str, list[int]]:
    """Return the process ids by directory: marked processes, and the session of the guest; in one scan of /proc."""
    pids = _by_directory({alive.pid: directory for directory in directories if (alive := life(directory))})
    return {directory: pids.get(directory, []) for directory in directories}


def below(root: str) -> dict[str, list[int]]:
    """Return the process ids by directory, of all directories below `root`, existing or not."""
    return {directory: pids for directory, pids in _by_directory({}).items() if directory.startswith(f"{root}/")}


def _by_directory(guests: Mapping[int, str]) -> dict[str, list[int]]:
    """Return the ids of all processes by directory, in one scan of /proc.

    A session belongs to the directory in its leader's mark, even its processes that dropped the mark.

    Args:
        guests: Process id -> directory of known guests; an exiting guest has no mark any more.
    """
    pids: dict[str, list[int]] = {}
    leaders, unmarked = dict(guests), {}
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            pid = int(name)
            directory, session = _mark(pid)
            if directory:
                pids.setdefault(directory, []).append(pid)
                if session == pid:
                    leaders[pid] = directory
            else:
                unmarked[pid] = session
    for pid, session in unmarked.items():
        if session in leaders:
            pids.setdefault(leaders[session], []).append(pid)
    return pids


def _mark(pid: int) -> tuple[str, int]:
    """Return the directory in the mark of a process, "" for none, and the id of its session, 0 if unknown."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = file.read()
        mark = f"{MARK}=".encode()
        entries = environment.split(b"\0") if mark in environment else ()
        marked = next((entry for entry in entries if entry.startswith(mark)), mark)
        return os.fsdecode(marked[len(mark) :]), os.getsid(pid)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return "", 0


def keeps_directory(pid: int, directory: str) -> bool:
    """Return whether a process is the guest of an existing directory, which may have been moved.

    A guest works in its directory, whose link count is positive for as long as it exists: even if it was moved, or its
    file system was unmounted. Only a removed directory has no links, and cannot come back.
    """
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            command = file.read().split(b"\0")
        # The arguments of `launch`. The directory of guest.py may have changed in an upgrade.
        if os.fsencode(directory) != command[4] or os.path.basename(command[3]) != os.fsencode(GUEST.name):
            return False
        return os.stat(f"/proc/{pid}/cwd").st_nlink > 0
    except (FileNotFoundError, ProcessLookupError, IndexError):
        return False  # the process has ended, or is no guest
    except OSError:
        return True  # the process may live, but cannot be inspected


def end(directories: Collection[str], grace_s: float = 0.0) -> None:
    """End all processes of the directories: SIGTERM and up to `grace_s` seconds first, then SIGKILL until none is left.

    Raises:
        Transient: A process cannot be killed (uninterruptible sleep).
    """
    if grace_s and _gone(directories, signal.SIGTERM, grace_s, repeat=False):
        return
    if not _gone(directories, signal.SIGKILL, _KILL_S, repeat=True):
        raise Transient(f"some processes of {', '.join(directories)} would not die")


def _gone(directories: Collection[str], number: signal.Signals, within_s: float, *, repeat: bool) -> bool:
    """Signal all processes until none is left; return False after `within_s` seconds.

    Without `repeat` each process gets the signal once; with it repeatedly, to reach newly forked processes.
    """
    deadline = time.monotonic() + within_s
    sent: set[int] = set()
    while time.monotonic() < deadline:
        pids = [pid for ids in belonging(directories).values() for pid in ids]
        # An exiting process has lost its environment, and so its mark, but holds its lock for a moment.
        if not pids and not any(map(life, directories)):
            return True
        for pid in pids:
            if repeat or pid not in sent:
                kill(pid, number)
                kill(pid, signal.SIGCONT)  # a stopped process receives no signal but SIGKILL
        sent.update(pids)
        time.sleep(0.005)
    return False


def kill(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def pause(directory: str) -> None:
    """Stop all processes of a directory (SIGSTOP), even newly forked ones.

    Raises:
        Transient: A process does not stop in time.
    """
    deadline = time.monotonic() + _KILL_S
    while running := _running(directory):
        # A process in vfork ("D") stops only after its child has become another program. If the child was stopped
        # earlier, neither gets further: continue all for a moment.
        if set(running.values()) == {"D"}:
            resume(directory)
            time.sleep(_BREATH_S)
        for pid in running:
            kill(pid, signal.SIGSTOP)
        if time.monotonic() > deadline:
            raise Transient(f"some processes of {directory} would not stop")
        time.sleep(0.005)


def _running(directory: str) -> dict[int, str]:
    """Return the processes of a directory that are neither stopped nor ended, with their states."""
    states = {pid: _state(pid) for pid in belonging([directory])[directory]}
    return {pid: state for pid, state in states.items() if state not in "TtZX"}


def resume(directory: str) -> None:
    for pid in belonging([directory])[directory]:
        kill(pid, signal.SIGCONT)


def _state(pid: int) -> str:
    """Return the state of a process, a letter as in proc(5); X if it does not exist."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"
