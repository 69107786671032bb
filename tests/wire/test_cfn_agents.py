"""Rollouts with the genuine agents of heat-cfntools: `cfn-hup` reads and runs a hook, the hook reports by `cfn-signal`.

cfn-hup reads and writes at fixed paths of a machine, so each agent has an /etc and a /var of its own (mount namespace).
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import bcrypt
import httpx
import pytest

from homeostat.api.access.auth import BasicAccess
from homeostat.clouds.simulated import SimulatedCloud
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
while :; do "$2" --no-daemon; sleep 0.2; done
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


def template(value: str) -> dict[str, Any]:
    member = {
        "image": "i",
        "flavor": "small",
        "user_data_format": "SOFTWARE_CONFIG",
        "software_config_transport": "POLL_SERVER_CFN",
    }
    return {
        "heat_template_version": "2018-08-31",
        "resources": {
            "group": {
                "type": "OS::Heat::ResourceGroup",
                "metadata": {"v": value},
                "properties": {
                    "count": MEMBERS,
                    "resource_def": {"type": "OS::Nova::Server", "properties": member},
                    "metadata_update_pattern": "canary",
                },
                "update_policy": {"rollout": {"steps": ["1", "50%", "100%"]}},
            },
            "handle": {"type": "AWS::CloudFormation::WaitConditionHandle"},
            "wait": {
                "type": "AWS::CloudFormation::WaitCondition",
                "depends_on": ["group"],
                "properties": {"Handle": {"get_resource": "handle"}, "Timeout": 600, "Count": MEMBERS},
            },
        },
        "outputs": {
            "url": {"value": {"get_resource": "handle"}},
            "members": {"value": {"get_attr": ["group", "refs"]}},
            "agents": {"value": {"get_attr": ["group", "attributes", "os_collect_config"]}},
        },
    }


class Fleet:
    """A group whose members are agents, each with files of its own below a directory."""

    def __init__(self, http: httpx.Client, directory: Path) -> None:
        self.http, self.directory, self.log = http, directory, directory / "applied"
        made = http.post("stacks", json={"stack_name": "web", "template": template("1")}).json()
        self.path = f"stacks/web/{made['stack']['id']}"
        until(lambda: self.output("url") and len(self.sections()) == MEMBERS, "the keys of the members")
        self.members: list[str] = self.output("members")

    def output(self, name: str) -> Any:
        return self.http.get(f"{self.path}/outputs/{name}").json()["output"]["output_value"]

    def sections(self) -> dict[str, dict[str, str]]:
        """Settings of the agents of the members, by name."""
        shown = self.output("agents") or {}
        return {name: each["os-collect-config"]["cfn"] for name, each in shown.items() if each}

    def change(self, value: str) -> None:
        assert self.http.put(self.path, json={"template": template(value)}).status_code == 202

    def wait_for(self, state: str) -> str:
        """Wait until the stack is in this state; give the reason of the group."""
        until(lambda: self.http.get(self.path).json()["stack"]["stack_status"] == state, state)
        resource = self.http.get(f"{self.path}/resources/group").json()["resource"]
        return str(resource["resource_status_reason"])

    def applied(self, since: int = 0) -> list[tuple[int, str]]:
        """What was applied: number of the member and value, one after the other."""
        lines = self.log.read_text().splitlines()[since:] if self.log.exists() else []
        return [(int(number), value) for number, _, value in (line.partition(" ") for line in lines)]

    def place(self, number: int) -> Path:
        """Make the /etc and the /var of an agent, as cfn-init makes them on a server."""
        here, section, member = self.directory / str(number), self.sections()[str(number)], self.members[number]
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
                f"[apply]\ntriggers=post.update\npath=Resources.group.Instances.{member}.Metadata\n"
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


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    passwords = tmp_path / "htpasswd"
    passwords.write_text(f"ada:{bcrypt.hashpw(b'x', bcrypt.gensalt(4)).decode()}\n")
    with (
        database(tmp_path) as db,
        serving(db, BasicAccess(passwords)) as url,
        working(db, SimulatedCloud(time.time), url=url),
        httpx.Client(base_url=f"{url}/v1/ada", auth=("ada", "x")) as http,
    ):
        fleet = Fleet(http, tmp_path)
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
