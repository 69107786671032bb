"""Rollouts with the genuine agents of heat-cfntools: `cfn-hup` reads and runs a hook, the hook reports by `cfn-signal`.

cfn-hup reads and writes at fixed paths of a machine, so each agent has an /etc and a /var of its own (mount namespace).
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import bcrypt
import httpx
import pytest

from homeostat.api.access.auth import BasicAccess
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.resources.user_data import boot_of
from tests.waiting import until
from tests.wire.running import database, serving, working

HUP, SIGNAL = (Path(sys.executable).with_name(name) for name in ("cfn-hup", "cfn-signal"))
MEMBERS = 4
UNSHARE = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
OF_THE_MACHINE = ("passwd", "group", "nsswitch.conf", "hosts", "ld.so.cache")
"""Files of /etc without which no program runs."""
# Images run cfn-hup from cron: it looks once and ends, also with --no-daemon.
LOOP = """
mount --bind "$1/etc" /etc && mount --bind "$1/var" /var || exit 1
while :; do "$2" --no-daemon; sleep 1; done
"""
HOOK = """#!/bin/sh
value=$(sed 's/.*"v": "\\([^"]*\\)".*/\\1/' /var/cache/heat-cfntools/last_metadata)
echo "{number} $value" >> {log}
! grep -qx "$value" /etc/cfn/refused
{signal} --exit-code $? --id {id} --reason "member {number} applied $value" '{url}'
"""


def own_mounts() -> bool:
    """Whether processes may have mounts of their own here."""
    return bool(shutil.which("unshare")) and not subprocess.call([*UNSHARE, "true"], stderr=subprocess.DEVNULL)


pytestmark = [
    pytest.mark.skipif(sys.version_info >= (3, 12), reason="boto 2, which heat-cfntools needs, ends with Python 3.11"),
    pytest.mark.skipif(not own_mounts(), reason="needs mount namespaces: root, or user namespaces for all"),
]


def servers(value: str) -> dict[str, Any]:
    """A group of servers that read their settings by POLL_SERVER_CFN."""
    member = {
        "image": "i",
        "flavor": "small",
        "user_data_format": "SOFTWARE_CONFIG",
        "software_config_transport": "POLL_SERVER_CFN",
    }
    return {
        "group": {
            "type": "OS::Heat::ResourceGroup",
            "metadata": {"v": value},
            "properties": {
                "count": MEMBERS,
                "resource_def": {"type": "OS::Nova::Server", "properties": member},
                "metadata_update_pattern": "canary",
            },
            "update_policy": {"rollout": {"steps": ["1", "50%", "100%"]}},
        }
    }


def launched(kind: str, **sizes: int) -> Callable[[str], dict[str, Any]]:
    """A group of this type with a launch configuration."""

    def group(value: str) -> dict[str, Any]:
        launch = {"ImageId": "i", "InstanceType": "small", "UserData": "#!/bin/sh\n"}
        settings = {"AvailabilityZones": ["nova"], "LaunchConfigurationName": {"get_resource": "launch"}, **sizes}
        return {
            "launch": {"type": "AWS::AutoScaling::LaunchConfiguration", "properties": launch},
            "group": {
                "type": kind,
                "metadata": {"v": value},
                "properties": {**settings, "MetadataUpdatePattern": "canary"},
                "update_policy": {"rollout": {"steps": ["1", "50%", "100%"]}},
            },
        }

    return group


GROUPS = {
    "servers": servers,
    "instances": launched("OS::Heat::InstanceGroup", Size=MEMBERS),
    "autoscaling": launched("AWS::AutoScaling::AutoScalingGroup", MinSize=MEMBERS, MaxSize=MEMBERS),
}


def template(group: dict[str, Any]) -> dict[str, Any]:
    return {
        "heat_template_version": "2018-08-31",
        "resources": {
            **group,
            "handle": {"type": "AWS::CloudFormation::WaitConditionHandle"},
            "wait": {
                "type": "AWS::CloudFormation::WaitCondition",
                "depends_on": ["group"],
                "properties": {"Handle": {"get_resource": "handle"}, "Timeout": 600, "Count": MEMBERS},
            },
        },
        "outputs": {
            "url": {"value": {"get_resource": "handle"}},
        },
    }


class Fleet:
    """A group whose members are agents, each with files of its own below a directory."""

    def __init__(
        self, http: httpx.Client, directory: Path, cloud: SimulatedCloud, group: Callable[[str], dict[str, Any]]
    ) -> None:
        self.http, self.directory, self.log = http, directory, directory / "applied"
        self.cloud, self.group = cloud, group
        made = http.post("stacks", json={"stack_name": "web", "template": template(group("1"))}).json()
        self.path = f"stacks/web/{made['stack']['id']}"
        until(lambda: self.output("url") and len(self.handles()) == MEMBERS, "the members")
        self.members = self.handles()

    def handles(self) -> list[str]:
        """Ids of the members, in the order of their numbers."""
        listed = self.http.get(f"{self.path}/resources", params={"nested_depth": 1}).json()["resources"]
        members = {each["resource_name"]: each["physical_resource_id"] for each in listed if "parent_resource" in each}
        return [members[name] for name in sorted(members) if members[name]]

    def output(self, name: str) -> Any:
        return self.http.get(f"{self.path}/outputs/{name}").json()["output"]["output_value"]

    def section(self, member: str) -> dict[str, str]:
        """Settings of the agent of a member, as its user data have them."""
        (files,) = (boot.files for boot in [boot_of(self.cloud.things("server")[member]["user_data"])] if boot)
        found: dict[str, str] = json.loads(files["cfn-init-data"])["os-collect-config"]["cfn"]
        return found

    def change(self, value: str) -> None:
        assert self.http.put(self.path, json={"template": template(self.group(value))}).status_code == 202

    def wait_for(self, state: str) -> str:
        """Wait until the stack is in this state; give the reason of the group."""
        until(lambda: self.http.get(self.path).json()["stack"]["stack_status"] == state, state)
        resource = self.http.get(f"{self.path}/resources/group").json()["resource"]
        return str(resource["resource_status_reason"])

    def applied(self, since: int = 0) -> list[tuple[int, str]]:
        """What was applied: number of the member and value, one after the other."""
        lines = self.log.read_text().splitlines()[since:] if self.log.exists() else []
        return [(int(number), value) for number, _, value in (line.partition(" ") for line in lines)]

    def place_of(self, member: str) -> str:
        """Name the place of a member by itself, or by the group alone: it is told by its key."""
        return "group" if self.members.index(member) % 2 else f"group.Instances.{member}"

    def place(self, number: int) -> Path:
        """Make the /etc and the /var of an agent, as cfn-init makes them on a server."""
        here, member = self.directory / str(number), self.members[number]
        section = self.section(member)
        at = urlsplit(section["metadata_url"])
        for name in ("etc/cfn/hooks.d", "var/lib/heat-cfntools", "var/cache/heat-cfntools", "var/log"):
            (here / name).mkdir(parents=True)
        for name in OF_THE_MACHINE:
            if Path("/etc", name).exists():
                shutil.copy(Path("/etc", name), here / "etc" / name)
        hook = here / "etc/cfn/apply"
        hook.write_text(
            HOOK.format(number=number, log=self.log, signal=SIGNAL, id=member, url=self.output("url")), "utf-8"
        )
        hook.chmod(0o700)
        keys = f"AWSAccessKeyId={section['access_key_id']}\nAWSSecretKey={section['secret_access_key']}\n"
        files = {
            "etc/cfn/cfn-credentials": keys,
            "etc/cfn/cfn-hup.conf": "[main]\nstack=web\ncredential-file=/etc/cfn/cfn-credentials\nregion=nowhere\n",
            "etc/cfn/hooks.d/apply.conf": (
                f"[apply]\ntriggers=post.update\npath=Resources.{self.place_of(member)}.Metadata\n"
                "runas=root\naction=/etc/cfn/apply\n"
            ),
            "etc/cfn/refused": "",
            "var/lib/heat-cfntools/cfn-metadata-server": f"{at.scheme}://{at.netloc}",
            "var/lib/heat-cfntools/cfn-boto-cfg": f"[Boto]\ncfn_region_endpoint={at.hostname}\n",
        }
        for name, content in files.items():
            (here / name).write_text(content)
        return here


@contextlib.contextmanager
def running(places: list[Path]) -> Iterator[None]:
    """An agent for each place, until the context ends."""
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    started = []
    try:
        for place in places:
            command = [*UNSHARE, "sh", "-c", LOOP, "agent", str(place), str(HUP)]
            with (place / "var/log/loop.log").open("wb") as log:
                started.append(
                    subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
                )
        yield
        assert [each.poll() for each in started] == [None] * len(places)
    finally:
        for each in started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(each.pid, signal.SIGKILL)
            each.wait()


@pytest.fixture(params=GROUPS)
def fleet(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Fleet]:
    passwords = tmp_path / "htpasswd"
    passwords.write_text(f"ada:{bcrypt.hashpw(b'x', bcrypt.gensalt(4)).decode()}\n")
    with (
        database(tmp_path) as db,
        serving(db, BasicAccess(passwords)) as url,
        working(db, cloud := SimulatedCloud(time.time), url=url),
        httpx.Client(base_url=f"{url}/v1/ada", auth=("ada", "x")) as http,
    ):
        fleet = Fleet(http, tmp_path, cloud, GROUPS[request.param])
        with running([fleet.place(number) for number in range(MEMBERS)]):
            fleet.wait_for("CREATE_COMPLETE")
            yield fleet


@pytest.mark.shows("RU2", "RU3", "RU4", "RU6")
def test_a_canary_goes_out_and_a_failing_hook_brings_it_back(fleet: Fleet, tmp_path: Path) -> None:
    assert sorted(fleet.applied()) == [(number, "1") for number in range(MEMBERS)]
    fleet.change("2")
    fleet.wait_for("UPDATE_COMPLETE")
    second = fleet.applied(MEMBERS)
    assert second[:2] == [(0, "2"), (1, "2")]
    assert sorted(second[2:]) == [(2, "2"), (3, "2")]

    done = len(fleet.applied())
    (tmp_path / "1/etc/cfn/refused").write_text("3\n")
    fleet.change("3")
    reason = fleet.wait_for("UPDATE_FAILED")
    assert "step 2: 1 member failed" in reason
    assert f"{fleet.members[1]}: member 1 applied 3" in reason
    until(lambda: len(fleet.applied(done)) == 4, "two members to have the old metadata again")
    third = fleet.applied(done)
    assert third[:2] == [(0, "3"), (1, "3")]
    assert sorted(third[2:]) == [(0, "2"), (1, "2")]
