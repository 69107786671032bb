"""The tests that Heat and Senlin have of a running service, as their projects run them: by stestr, in `.tempest`."""

import configparser
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.openstack.running import OpenStack

PASSWORD = "minios"
REGION = "RegionOne"
BUILD_S = 900
"""For each stack: on a busy machine."""
OUTCOMES = Path(__file__).with_name("outcomes.py")


@dataclass(frozen=True, slots=True)
class Tempest:
    """place — of the environment. work — a directory for its files. cloud — has the service in its catalogue."""

    place: Path
    work: Path
    cloud: OpenStack

    def run(self, plugin: str, chosen: str, left_out: Path, workers: int) -> dict[str, str]:
        """Run tests and return what became of each: success, fail, skip.

        plugin — the package with the tests. chosen — a regular expression of their names in its tests. left_out — a
        file of regular expressions of those not to run. workers — how many tests run at once.
        """
        self._configure(plugin)
        self._stestr("init")
        options = ("--concurrency", str(workers), "--exclude-list", str(left_out), f"^{plugin}.tests.{chosen}")
        with (self.work / "run.out").open("wb") as out:
            # Whether any failed is judged by the outcomes.
            subprocess.run(
                [self._program("stestr"), "run", *options], cwd=self.work, env=self._env, stdout=out, check=False
            )
        with (self.work / "last").open("wb") as last:
            subprocess.run([self._program("stestr"), "last", "--subunit"], cwd=self.work, stdout=last, check=False)
        with (self.work / "last").open("rb") as last:
            shown = subprocess.run([self._program("python"), OUTCOMES], stdin=last, capture_output=True, check=True)
        return {str(name): str(status) for name, status in json.loads(shown.stdout).items()}

    @property
    def output(self) -> str:
        """What the last run printed: the traceback of each failure."""
        return (self.work / "run.out").read_text(errors="replace")

    def _program(self, name: str) -> str:
        return str(self.place / "bin" / name)

    def _stestr(self, *arguments: str) -> None:
        subprocess.run([self._program("stestr"), *arguments], cwd=self.work, check=True, capture_output=True)

    @property
    def _env(self) -> Mapping[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
        path = f"{self.place / 'bin'}:{os.environ['PATH']}"
        return {
            **inherited,
            "PATH": path,
            "PYTHONWARNINGS": "ignore",
            "TEMPEST_CONFIG_DIR": str(self.work),
            "TEMPEST_CONFIG": "tempest.conf",
        }

    def _configure(self, plugin: str) -> None:
        sections = {
            "service_available": {"heat": "true", "senlin": "true", "zaqar": "true"},
            "compute": {"flavor_ref": "m1.tiny", "image_ref": "mini", "build_interval": "1"},
            "clustering": {
                "min_microversion": "1.0",
                "delete_with_dependency": "true",
                "health_policy_version": "1.1",
                "wait_timeout": str(BUILD_S),
            },
            "volume-feature-enabled": {"backup": "false"},
            "heat_features_enabled": {"stack_cancel": "true"},
            "heat_plugin": self._plugin(),
            "identity": {"uri_v3": self.cloud.auth_url, "auth_version": "v3", "region": REGION},
            "auth": {
                "admin_username": "admin",
                "admin_password": PASSWORD,
                "admin_project_name": "admin",
                "admin_domain_name": "Default",
                "create_isolated_networks": "false",
            },
        }
        conf = configparser.ConfigParser(interpolation=None)
        conf.read_dict({"DEFAULT": {"log_file": str(self.work / "tempest.log")}, **sections})
        with (self.work / "tempest.conf").open("w") as file:
            conf.write(file)
        (site,) = self.place.glob("lib/python3*/site-packages")
        (self.work / ".stestr.conf").write_text(f"[DEFAULT]\ntest_path={site / plugin}\ntop_dir={site}\n")

    def _plugin(self) -> dict[str, str]:
        return {
            "auth_url": self.cloud.auth_url,
            "username": "demo",
            "password": PASSWORD,
            "project_name": "demo",
            "admin_username": "admin",
            "admin_password": PASSWORD,
            "admin_project_name": "admin",
            "user_domain_name": "Default",
            "project_domain_name": "Default",
            "region": REGION,
            "build_timeout": str(BUILD_S),
            "build_interval": "1",
            "hidden_stack_tag": "hidden",
            "image_ref": "mini",
            "minimal_image_ref": "mini",
            "instance_type": "m1.small",
            "minimal_instance_type": "m1.small",
            "fixed_network_name": "private",
            "fixed_subnet_name": "private",
            "network_for_ssh": "private",
            "floating_network_name": "public",
            "convergence_engine_enabled": "true",
            "connectivity_timeout": "5",
            "ssh_timeout": "5",
        }
