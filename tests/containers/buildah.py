"""Images and containers by buildah, which needs no daemon: a container is a chroot on the network of this machine."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SUITE = "trixie"
BASE = f"localhost/homeostat-tests-{SUITE}"
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
LIMIT_S = 900.0


def available() -> bool:
    return all(shutil.which(each) for each in ("buildah", "debootstrap"))


def run(*words: str | Path) -> str:
    ended = subprocess.run(
        list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, check=False
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


def make_base(folder: Path) -> None:
    """Make the image of a plain Debian, unless it is there."""
    if (
        subprocess.run(["buildah", "inspect", "--type", "image", BASE], capture_output=True, check=False).returncode
        == 0
    ):
        return
    run("debootstrap", "--variant=minbase", "--include=ca-certificates", SUITE, folder / SUITE)
    container = run("buildah", "from", "scratch").strip()
    run("buildah", "add", "--quiet", container, folder / SUITE, "/")
    run("buildah", "commit", "--quiet", "--rm", container, BASE)
    shutil.rmtree(folder / SUITE)


def described(image: str) -> Mapping[str, Any]:
    """Return what an image says of itself."""
    found: Mapping[str, Any] = json.loads(run("buildah", "inspect", "--type", "image", image))["Docker"]["config"]
    return found


@dataclass(frozen=True, slots=True)
class Container:
    """A container that runs a command at a time."""

    name: str
    options: tuple[str, ...]

    def call(self, *words: str) -> list[str]:
        return ["buildah", "run", "--isolation", "chroot", *self.options, self.name, "--", *words]

    def run(self, *words: str) -> str:
        return run(*self.call(*words))

    @contextlib.contextmanager
    def running(self, log: Path, *words: str) -> Iterator["Running"]:
        """Run a command beside the test; it is ended with that at the latest."""
        with log.open("w", encoding="utf-8") as output:
            started = subprocess.Popen(self.call(*words), stdout=output, stderr=subprocess.STDOUT)
        try:
            yield Running(started, log)
        finally:
            for pid in [*_inside(started.pid), started.pid]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            started.wait()


@dataclass(frozen=True, slots=True)
class Running:
    """A command that runs in a container."""

    started: "subprocess.Popen[bytes]"
    log: Path

    def processes(self) -> list[int]:
        """Return its processes, the first one first; none of buildah's own."""
        return [pid for pid in _inside(self.started.pid) if "buildah" not in _of(pid, "comm")]

    def stop(self, number: int) -> int:
        """Send the first of its processes a signal, as who stops a container does; return its exit code."""
        os.kill(self.processes()[0], number)
        return self.started.wait(timeout=LIMIT_S)


def _inside(pid: int) -> Iterator[int]:
    """Yield the descendants of a process, parents first."""
    for task in _tasks(pid):
        for child in map(int, _of(pid, f"task/{task}/children").split()):
            yield child
            yield from _inside(child)


def _tasks(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except FileNotFoundError:
        return []


def _of(pid: int, what: str) -> str:
    """Return what the kernel says of a process, nothing if it has ended."""
    try:
        return Path(f"/proc/{pid}/{what}").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return ""


@contextlib.contextmanager
def container(image: str, *options: str) -> Iterator[Container]:
    """A container of an image; it is removed with all that it has written."""
    name = run("buildah", "from", "--pull-never", image).strip()
    try:
        yield Container(name, options)
    finally:
        run("buildah", "rm", name)
