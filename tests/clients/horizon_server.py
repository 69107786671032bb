"""A Horizon with heat-dashboard of the tests' own, on Django's server.

In the virtual environment that `scripts/horizon` makes.
"""

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path

import httpx

from tests.real.processes import end_with_the_tests
from tests.waiting import until


@contextlib.contextmanager
def running(environment: Path, keystone_url: str, log: Path) -> Iterator[str]:
    """Logged in at this Keystone. Gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(environment / "bin" / "django-admin"), "runserver", "--insecure", "--noreload", f"127.0.0.1:{port}"]
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("OS_", "PYTHON"))}
    environ = {**plain, "DJANGO_SETTINGS_MODULE": "openstack_dashboard.settings", "OS_AUTH_URL": keystone_url}
    with (
        log.open("wb") as written,
        subprocess.Popen(command, env=environ, stdout=written, stderr=written, preexec_fn=end_with_the_tests) as server,
    ):
        address = f"http://127.0.0.1:{port}"

        def answers() -> bool:
            assert server.poll() is None, log.read_text()[-4000:]
            with contextlib.suppress(httpx.TransportError):
                return httpx.get(f"{address}/auth/login/").is_success
            return False

        try:
            until(answers, "Horizon to answer")
            yield address
        finally:
            server.kill()


def versions(environment: Path, *names: str) -> dict[str, str]:
    """Of these packages in a virtual environment."""
    (packages,) = environment.glob("lib/python3*/site-packages")
    return {name: next(iter(distributions(name=name, path=[str(packages)]))).version for name in names}
