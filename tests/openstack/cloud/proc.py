"""What Linux knows of processes."""

import contextlib
import os
from pathlib import Path


def stat(pid: int | str) -> tuple[int, str] | None:
    """Process group and start time. None: it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        # The first thread may be a zombie while others, which go on dying, still hold a port.
        has_ended = fields[0] == "Z" and len(os.listdir(f"/proc/{pid}/task")) == 1
    except OSError:
        return None
    return None if has_ended else (int(fields[2]), fields[19])


def groups() -> set[int]:
    """The process groups that have a living process."""
    return {found[0] for pid in _pids() if (found := stat(pid)) is not None}


def members(group: int) -> list[str]:
    """The processes of a process group."""
    return [pid for pid in _pids() if (found := stat(pid)) is not None and found[0] == group]


def resident_mib(pid: str) -> int:
    with contextlib.suppress(OSError):
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") >> 20
    return 0


def _pids() -> list[str]:
    return [name for name in os.listdir("/proc") if name.isdigit()]
