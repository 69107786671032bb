"""The processes of a cloud: they outlive the command that starts them."""

import contextlib
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tests.openstack.cloud import ports, proc
from tests.openstack.cloud.errors import Failure
from tests.openstack.cloud.site import Site
from tests.openstack.cloud.waiting import listening, wait_for

API_S = 180.0
STOP_S = 15.0
LOOK_S = 0.1
ANSWER_S = 5.0


@dataclass(frozen=True, slots=True)
class Processes:
    """commands — of all that the cloud has, by name."""

    site: Site
    commands: Mapping[str, Sequence[str]]

    def pid(self, name: str) -> int | None:
        """The id of a running process, which leads a process group of its own."""
        try:
            pid, started = self.site.run("pid", name).read_text().split()
        except (FileNotFoundError, ValueError):
            return None
        found = proc.stat(pid)
        # By the start time our process differs from a later one with its number.
        return int(pid) if found is not None and found[1] == started else None

    def recorded(self) -> list[str]:
        """Names of what was started and not stopped."""
        with contextlib.suppress(FileNotFoundError):
            return sorted(os.listdir(self.site.run("pid")))
        return []

    def any_run(self) -> bool:
        return any(self.pid(name) for name in self.recorded())

    def start(self, name: str) -> None:
        """Nothing is done where it runs. Fails: Failure where another program has its port."""
        if self.pid(name):
            return
        if name in ports.OFFSETS and listening(self.site.port(name)):
            raise Failure(f"another program has port {self.site.port(name)}, of {name}: choose others with --port-base")
        with self.site.log(name).open("ab") as log:
            started = subprocess.Popen(
                self.commands[name],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.site.environment(),
                cwd=self.site.directory,
                start_new_session=True,
            )
        found = proc.stat(started.pid)
        self.site.run("pid", name).write_text(f"{started.pid} {found[1] if found else 0}")

    def check(self, name: str) -> bool:
        """True. Fails: Failure if it has died."""
        if self.pid(name):
            return True
        raise Failure(f"{name} has died, {self.site.see(name)}")

    def wait_for_api(self, name: str) -> None:
        """Until it answers. Fails: Failure if it dies, or does not answer in time."""

        def answers() -> bool:
            self.check(name)
            try:
                urllib.request.urlopen(self.site.url(name, "/"), timeout=ANSWER_S).close()
            except urllib.error.HTTPError as error:
                return error.code < 500
            except OSError:
                return False
            return True

        wait_for(name, answers, API_S)

    def stop(self, names: Collection[str], by: signal.Signals = signal.SIGTERM) -> None:
        """Returns when all have ended; those that take too long are killed."""
        pids = {pid for name in names if (pid := self.pid(name))}
        _signal(pids, by)
        deadline = time.monotonic() + STOP_S
        while proc.groups() & pids:
            if time.monotonic() > deadline:
                _signal(pids, signal.SIGKILL)
            time.sleep(LOOK_S)
        for name in names:
            self.site.run("pid", name).unlink(missing_ok=True)


def _signal(groups: set[int], by: signal.Signals) -> None:
    for group in groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, by)
