"""Keeps a process, and all that it starts, from files: Landlock, which needs no rights and cannot be undone.

Used by `guest.py`, outside of the package: imports little. Linux 5.13 and later, where the kernel has it switched on.
"""

import ctypes
import os
import stat
import struct

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""Numbers of the system calls, the same on every architecture."""
_VERSION = 1
_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38
_OF_FILES = 0b1100_0000_0000_0111
"""Execute, write, read; truncate, and control of devices."""
READ = 0b1101
"""Execute and read files, and list directories."""
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
"""Version -> how many rights about files it knows, each a bit; 16 since version 5."""
_SCOPED = 0b11
"""Abstract sockets, and signals, to processes outside: since version 6."""


def version() -> int:
    """Of the Landlock of this machine; 0 where there is none."""
    found: int = _libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)
    return max(0, found)


def confine(denied: list[str], own: str, writable: list[str]) -> None:
    """From now on this process reaches nothing in `denied`, except `own`, to read, and `writable`.

    denied — absolute paths without links; own, writable — paths, in `denied` or not. Fails: OSError.
    """
    libc, number = _libc(), version()
    every = (1 << _RIGHTS.get(number, 16)) - 1
    attributes = struct.pack("QQQ", every, 0, _SCOPED)[: 24 if number >= 6 else 16 if number >= 4 else 8]
    ruleset = _checked(libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0))
    rules = [(path, every) for path in (*openings(denied), *writable)]
    for path, rights in (*rules, (own, READ)):
        try:
            opened = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue  # what this process does not reach needs no rule
        mode = os.fstat(opened).st_mode
        if not stat.S_ISLNK(mode):  # a link leads to where other rules hold
            rights &= every if stat.S_ISDIR(mode) else every & _OF_FILES
            _checked(libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, opened), 0))
        os.close(opened)
    _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked(libc.syscall(_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def openings(denied: list[str]) -> list[str]:
    """Paths that together are everything but `denied`, as far as it can be listed."""
    found = []
    around = ["/"]
    while around:
        directory = around.pop()
        try:
            names = os.listdir(directory)
        except OSError:
            continue
        for name in names:
            path = os.path.join(directory, name)
            if path in denied:
                continue
            if any(each.startswith(f"{path}/") for each in denied):
                around.append(path)
            else:
                found.append(path)
    return found


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(answer: int) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock: {os.strerror(number)}")
    return answer
