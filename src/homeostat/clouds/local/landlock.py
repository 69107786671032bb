"""Landlock: confines a process and its children to some files; needs no privileges and cannot be undone.

Used by `guest.py`, which runs outside of the package, so it imports little. Linux 5.13 and later, if the kernel enables
Landlock.
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
"""Rights that apply to files: execute, write, read, truncate, and control of devices."""
READ = 0b1101
"""Rights to execute and read files, and to list directories."""
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
"""Version -> number of its rights on files, each a bit; 16 since version 5."""
_SCOPED = 0b11
"""Denies abstract sockets of, and signals to, processes outside: since version 6."""


def version() -> int:
    """Return the version of Landlock on this machine; 0 if absent."""
    number: int = _libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)
    return max(0, number)


def confine(denied: list[str], own: str, writable: list[str]) -> None:
    """Deny this process everything in `denied`, except `own`, to read, and `writable`.

    Args:
        denied: Absolute paths without links.
        own: Path, in `denied` or not.
        writable: Paths, in `denied` or not.

    Raises:
        OSError: The kernel refuses.
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
            continue  # a path that this process cannot reach needs no rule
        mode = os.fstat(opened).st_mode
        if not stat.S_ISLNK(mode):  # the target of a link is subject to other rules
            rights &= every if stat.S_ISDIR(mode) else every & _OF_FILES
            _checked(libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, opened), 0))
        os.close(opened)
    _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked(libc.syscall(_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def openings(denied: list[str]) -> list[str]:
    """Return paths that together cover everything but `denied`, as far as listable.

    Landlock has only rules that allow, so the rest has to be allowed path by path.
    """
    paths = []
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
            if any(other.startswith(f"{path}/") for other in denied):
                around.append(path)
            else:
                paths.append(path)
    return paths


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(answer: int) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock: {os.strerror(number)}")
    return answer
