"""The program in the catalogue of the OpenStack, where clients and other services find it."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from homeostat.main import main
from tests.cli.conftest import home_below
from tests.identity.conftest import variables
from tests.openstack.running import OpenStack

TYPES = ("orchestration", "cloudformation", "clustering")


def unregister(cloud: OpenStack) -> None:
    """Remove what `homeostat register` has made in Keystone."""
    with contextlib.closing(cloud.admin()) as admin:
        identity: Any = admin.identity
        for service in identity.services():
            if service.type in TYPES:
                identity.delete_service(service)
        for domain in identity.domains(name="heat"):
            identity.update_domain(domain, is_enabled=False)
            identity.delete_domain(domain)
        user = identity.find_user("homeostat")
        if user is not None:
            identity.delete_user(user)


@contextlib.contextmanager
def catalogued(cloud: OpenStack, directory: Path, program: Path, *flags: str, proxy: str = "") -> Iterator[str]:
    """Register the program and serve it, for users of Keystone, in that OpenStack.

    program — the command, see `homeostat_program`. flags — further ones of `serve`. proxy — URL through which it asks
    other services. Gives its address.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url, config = f"http://127.0.0.1:{port}", str(directory / "keystone.ini")
    unregister(cloud)
    try:
        with pytest.MonkeyPatch.context() as environ:
            for name, value in variables(cloud.auth_url, "admin", "minios", "admin").items():
                environ.setenv(name, value)
            assert main(["register", "--keystone-config", config, "--public-url", url]) == 0
        with home_below(directory, program) as home:
            access = ("--access", "keystone", "--keystone-config", config, "--public-url", url)
            with pytest.MonkeyPatch.context() as environ:
                for name, value in {"http_proxy": proxy, "no_proxy": "", "NO_PROXY": ""}.items() if proxy else ():
                    environ.setenv(name, value)
                started = home.run("serve", "--detach", "--port", str(port), "--cloud", "openstack", *access, *flags)
            assert started.code == 0, started.err
            yield url
            assert "Traceback" not in home.state.log.read_text()
    finally:
        unregister(cloud)
