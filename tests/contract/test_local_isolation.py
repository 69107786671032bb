"""What keeps user data away from the files of the service, where the machine has it."""

import os
import sys
from pathlib import Path

import pytest
from tests.contract.local_things import made
from tests.waiting import until

from homeostat.clouds.local import LocalCloud, landlock
from homeostat.clouds.port import Change

pytestmark = pytest.mark.skipif(not landlock.version(), reason="this machine has no Landlock")
SCRIPT = f"""#!{sys.executable} -IS
import os, pathlib
noted = []
def attempt(name, act):
    try:
        act()
        noted.append(name + " yes")
    except OSError as error:
        noted.append(name + " no")
private = pathlib.Path(os.environ["HOMEOSTAT_METADATA_PRIVATE"])
service = os.environ["HOMEOSTAT_METADATA_SERVICE"]
here = pathlib.Path.cwd().parent
attempt("read key", lambda: (private / "keys").read_text())
attempt("write key", lambda: (private / "keys").write_text("mine"))
attempt("list state", lambda: os.listdir(private))
attempt("read database", lambda: open(private / "homeostat.db", "rb").read())
attempt("read others", lambda: os.listdir(here.parent))
attempt("read own record", lambda: (here / "thing.json").read_text())
attempt("write own record", lambda: (here / "thing.json").write_text("torn"))
attempt("read memory of the service", lambda: open(f"/proc/{{service}}/environ", "rb").read())
attempt("reach by the service", lambda: open(f"/proc/{{service}}/root{{private}}/keys").read())
attempt("kill the service", lambda: os.kill(int(service), 0))
attempt("read system", lambda: os.listdir("/usr"))
attempt("write own disk", lambda: pathlib.Path("mine").write_text("data"))
attempt("write temporary", lambda: open("/dev/shm/homeostat-test", "w").close())
attempt("run programs", lambda: os.waitstatus_to_exitcode(os.system("/bin/true > /dev/null")))
pathlib.Path("noted").write_text("\\n".join(noted))
import time
while not pathlib.Path("dev/vdb").exists():
    time.sleep(0.01)
(pathlib.Path("dev/vdb") / "written").write_text("by the server")
"""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "keys").write_text("secret")
    (tmp_path / "state" / "homeostat.db").write_text("rows")
    return tmp_path / "state"


def test_user_data_does_not_reach_the_files_of_the_service(state: Path) -> None:
    cloud = LocalCloud(state / "cloud", private=[state])
    try:
        metadata = {"private": str(state), "service": str(os.getpid())}
        web = made(cloud, "server", "s", name="web", image="cirros", user_data=SCRIPT, metadata=metadata)
        noted = state / "cloud" / "servers" / web.handle / "root" / "noted"
        until(lambda: noted.exists() and noted.read_text().count("\n") == 13)
        found = dict(line.rsplit(" ", 1) for line in noted.read_text().splitlines())
        kill = "yes" if landlock.version() < 6 else "no"
        expected = {
            **dict.fromkeys(("read key", "write key", "list state", "read database", "read others"), "no"),
            **dict.fromkeys(("write own record", "reach by the service"), "no"),
            "read memory of the service": "no" if os.geteuid() else "yes",
            **dict.fromkeys(("read own record", "read system", "write own disk", "write temporary"), "yes"),
            "run programs": "yes",
            "kill the service": kill,
        }
        assert found == expected
        assert (state / "keys").read_text() == "secret"
        disk = made(cloud, "volume", "v", name="later", size=1).handle
        made(cloud, "volume_attachment", "a", instance_uuid=web.handle, volume_id=disk)
        written = state / "cloud" / "volumes" / disk / "data" / "written"
        until(lambda: written.exists() and written.read_text() == "by the server")
        assert cloud.update("server", [Change(web.handle, {"metadata": {"a": "b"}}, ("metadata",))])
    finally:
        cloud.destroy()


def test_what_is_open_is_everything_but_what_is_denied(tmp_path: Path) -> None:
    for name in ("a/b/secret", "a/b/open", "a/c", "d"):
        (tmp_path / name).mkdir(parents=True)
    opened = landlock.openings([str(tmp_path / "a" / "b" / "secret"), str(tmp_path / "d")])
    inside = sorted(path for path in opened if path.startswith(str(tmp_path)))
    assert inside == [str(tmp_path / "a" / "b" / "open"), str(tmp_path / "a" / "c")]
    assert "/usr" in opened
    assert not any(str(tmp_path).startswith(f"{path}/") for path in opened)
