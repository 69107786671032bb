"""Files of the local cloud: atomic writes, locks, and removal of trees that guests have changed."""

import contextlib
import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def open_directory(name: str, inside: int) -> Iterator[int]:
    descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=inside)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def opener_in(directory: int) -> Any:
    """Return an opener for `open` that takes names as names in this directory."""
    return lambda name, flags: os.open(name, flags, 0o600, dir_fd=directory)


@contextlib.contextmanager
def file_lock(path: str, inside: int | None = None) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600, dir_fd=inside)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def scan(directory: str) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except FileNotFoundError:
        return []


def write_whole(path: str, text: str, mode: int = 0o600, inside: int | None = None) -> None:
    """Replace a file atomically: readers see the old or the new text, never a part.

    Args:
        text: New text.
        inside: Descriptor of the directory that the path is relative to; None for the working directory.
    """
    temporary = f"{path}.{uuid.uuid4().hex[:8]}.new"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode, dir_fd=inside)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path, src_dir_fd=inside, dst_dir_fd=inside)
    except OSError:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=inside)
        raise


def remove_tree(path: str) -> None:
    """Remove a tree, even if a guest made directories unreadable, or another process removes the same tree."""

    def unlock_and_retry(remove: Any, failed: str, error: Any) -> None:
        if isinstance(error[1], FileNotFoundError):
            return
        os.chmod(os.path.dirname(failed), 0o700)
        if os.path.isdir(failed) and not os.path.islink(failed):
            os.chmod(failed, 0o700)
            shutil.rmtree(failed)
        else:
            remove(failed)

    shutil.rmtree(path, onerror=unlock_and_retry)
