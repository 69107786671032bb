"""How many instructions an operation takes: the same on a busy machine, where times are noise. Needs valgrind."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.databases import database_url
from bench.engine import Engine
from bench.figures import Figure, Measured
from bench.lifecycle import lifecycle_of

WARM_UP_N = 40
"""Resources of the lifecycle before the one that counts: it loads modules, and builds statements."""


class Counted(Engine):
    """An engine whose operations callgrind counts: it takes the calls of two rare system functions for marks."""

    def measure(self, operation: str, shape: str, n: int, act: Callable[[], None]) -> Measured:
        os.getsid(0)
        measured = super().measure(operation, shape, n, act)
        os.getpgid(0)
        return measured


def instructions(shape: str, n: int) -> Iterator[Figure]:
    """Count the instructions of all threads, on SQLite.

    Raises:
        RuntimeError: There is no valgrind.
    """
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise RuntimeError("instructions are counted by valgrind: install the package of this name")
    with TemporaryDirectory() as folder:
        counts = Path(folder, "counts")
        marks = ["--zero-before=getsid", "--dump-before=getpgid"]
        command = [valgrind, "--quiet", "--tool=callgrind", f"--callgrind-out-file={counts}", *marks]
        command += [sys.executable, "-m", "bench.instructions", shape, str(n)]
        done = subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": "0"}, check=True, stdout=subprocess.PIPE)
        for number, operation in enumerate(done.stdout.decode().split(), 1):
            count = _count(Path(f"{counts}.{number}"))
            about = f"{count / 1e6:.1f} million altogether"
            yield Figure(f"{operation}.{shape}.instructions", count / n, "instructions/resource", n, about=about)


def _count(path: Path) -> int:
    lines = path.read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("summary:"))


def main() -> None:
    """Run the counted lifecycle, and print the names of its operations."""
    shape, n = sys.argv[1], int(sys.argv[2])
    for engine_type, size in ((Engine, WARM_UP_N), (Counted, n)):
        with database_url("sqlite") as url:
            engine = engine_type(url)
            measured = lifecycle_of(engine, shape, size)
            engine.close()
    print(*(each.operation for each in measured))


if __name__ == "__main__":
    main()
