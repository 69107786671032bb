"""gophercloud, OpenStack's library for Go: its own acceptance tests, and ours beside them.

`scripts/gophercloud` compiles them. They find the service in Keystone's catalogue.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.clients.conftest import installed
from tests.identity.conftest import Person, variables

ENDED = re.compile(r"^--- (\w+): (\w+)", re.MULTILINE)
LIBRARY = Path("/usr/share/gocode/src/github.com/gophercloud/gophercloud")
LISTED = {"clustering": {"TestReceiversNotify"}}
"""What fails: a receiver of type message needs Zaqar, which the local cloud has not."""
HEALED = {"TestStackResources"}
"""What may fail: it expects that a resource which is marked unhealthy stays so. Here it is replaced at once."""
LEAST = {"orchestration": 7, "clustering": 28, "ours": 8}
OF_CLOUD = {
    "OS_IMAGE_ID": "ubuntu",
    "OS_FLAVOR_ID": "m1.small",
    "OS_FLAVOR_ID_RESIZE": "m1.large",
    "OS_NETWORK_NAME": "private",
    # Of other services, whose tests are not run; the library wants them all.
    "OS_NETWORK_ID": "unused",
    "OS_SUBNET_ID": "unused",
    "OS_EXTGW_ID": "unused",
    "OS_POOL_NAME": "unused",
    "OS_SHARE_NETWORK_ID": "unused",
}


@pytest.mark.timeout(900)  # dozens of tests, which wait for a second at a time
@pytest.mark.parametrize("tests", ["orchestration", "clustering", "ours"])
def test_all_tests_pass_but_those_that_are_listed(tests: str, service_url: str, person: Person, tmp_path: Path) -> None:
    program = installed("gophercloud", tests) / tests
    # What acceptance tests read lies beside their sources.
    where = LIBRARY / "acceptance" / "openstack" / tests / "v1" if tests != "ours" else tmp_path
    login = {**variables(person.url, person.name, person.name, person.project), "OS_DOMAIN_ID": "default"}
    plain = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
    environ = {**plain, **login, **OF_CLOUD, "OS_REGION_NAME": "RegionOne"}
    done = subprocess.run([program, "-test.v"], cwd=where, env=environ, capture_output=True, text=True, check=False)
    print(done.stdout)  # shown when the test fails
    ended = {name: result for result, name in ENDED.findall(done.stdout)}
    assert {name for name, result in ended.items() if result != "PASS"} - HEALED == LISTED.get(tests, set())
    assert len(ended) >= LEAST[tests]
