"""Where a cloud is: its files, ports and the environment of its processes."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.openstack.cloud import ports
from tests.openstack.cloud.errors import Failure
from tests.openstack.cloud.settings import Settings

HERE = Path(__file__).parent
INSIDE = HERE / "inside"
PASSWORD = "minios"
"""Of every account: this is a cloud for tests."""
CONFIGURED_BY_VARIABLE = ("keystone", "placement", "nova", "glance", "neutron", "designate", "blazar")
LOG_LINES = 15


@dataclass(frozen=True, slots=True)
class Site:
    """A directory, and what the cloud in it is made with."""

    directory: Path
    settings: Settings

    def path(self, *parts: str) -> Path:
        return self.directory.joinpath(*parts)

    def run(self, *parts: str) -> Path:
        """A path in the part of the directory that `down --wipe` removes."""
        return self.directory.joinpath("run", *parts)

    @property
    def venv(self) -> Path:
        return self.directory / "venv"

    @property
    def clouds_yaml(self) -> Path:
        return self.directory / "clouds.yaml"

    @property
    def faults(self) -> Path:
        return self.directory / "faults.json"

    @property
    def members(self) -> Path:
        return self.run("members.json")

    @property
    def transport_url(self) -> str:
        return f"rabbit://guest:guest@127.0.0.1:{ports.RABBITMQ}/{self.settings.name}"

    def program(self, name: str) -> str:
        """A program of the cloud's virtual environment."""
        return str(self.venv / "bin" / name)

    def port(self, server: str) -> int:
        return self.settings.port_base + ports.OFFSETS[server]

    def url(self, server: str, path: str = "") -> str:
        return f"http://127.0.0.1:{self.port(server)}{path}"

    def environment(self) -> dict[str, str]:
        """Of the services: where they find their configuration and our plug-ins, and nothing of another cloud."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
        return {
            **own,
            "PATH": f"{self.venv / 'bin'}:{own.get('PATH', '')}",
            "PYTHONPATH": f"{INSIDE}:{self.run('lib')}",
            "PYTHONUNBUFFERED": "1",
            "PYTHONWARNINGS": "ignore",
            "PYTHONDONTWRITEBYTECODE": "",
            "MALLOC_ARENA_MAX": "2",  # bounds what threads make malloc hold
            "MINIOS_FAULTS": str(self.faults),
            "MINIOS_FAULTS_LOG": str(self.log("faults")),
            "MINIOS_HYPERVISOR": str(self.run("hypervisor")),
            "MINIOS_MEMBERS": str(self.members),
            "HOME": str(self.run("home")),  # where the optional services look for ~/.NAME/NAME.conf
            "OS_CLIENT_CONFIG_FILE": str(self.clouds_yaml),
            **{f"OS_{each.upper()}_CONFIG_DIR": str(self.run("etc", each)) for each in CONFIGURED_BY_VARIABLE},
        }

    def call(self, *command: str) -> str:
        """Run a command; gives what it prints. Fails: Failure with it."""
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise Failure(f"{' '.join(command)} failed (exit {done.returncode}):\n{done.stdout[-2000:]}")
        return done.stdout

    def call_inside(self, log: str, *command: str) -> None:
        """Run a command as the services run, printing to a log. Fails: Failure with the end of the log."""
        with self.log(log).open("ab") as output:
            done = subprocess.run(command, stdout=output, stderr=output, env=self.environment())
        if done.returncode:
            raise Failure(f"{' '.join(command)} failed (exit {done.returncode}), {self.see(log)}")

    def log(self, name: str) -> Path:
        return self.run("log", f"{name}.log")

    def see(self, log: str) -> str:
        """Words for an error message: where a log is, and its end."""
        try:
            lines = self.log(log).read_text(errors="replace").splitlines()[-LOG_LINES:]
        except OSError:
            lines = []
        return "\n    ".join([f"see {self.log(log)}", *lines])
