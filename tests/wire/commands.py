"""The genuine `openstack` command, run in this process, with every plug-in that is installed."""

import contextlib
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from openstackclient.shell import OpenStackShell
from osc_lib.clientmanager import ClientCache, ClientManager

from tests.wire.running import settled


@dataclass(frozen=True, slots=True)
class OpenStack:
    """Runs commands. directory — for their files; http — plain requests below the project; stack — id of `hello`."""

    directory: Path
    http: httpx.Client
    stack: str

    def __call__(self, *words: str, code: int = 0) -> str:
        """What the command prints. It must end with this code."""
        said, complaints = io.StringIO(), io.StringIO()
        for client in vars(ClientManager).values():
            if isinstance(client, ClientCache):
                client._handle = None  # which is kept for the process, whatever the endpoint
        endpoint = ("--os-auth-type", "none", "--os-endpoint", str(self.http.base_url).rstrip("/"))
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complaints):
            ended = OpenStackShell().run([*endpoint, *words])
        assert ended == code, complaints.getvalue() + said.getvalue()
        return said.getvalue() + (complaints.getvalue() if code else "")

    def shown(self, *words: str) -> Any:
        """What it prints as JSON."""
        return json.loads(self(*words, "-f", "json"))

    def text(self, name: str, content: str) -> str:
        """Path of a file with this content."""
        path = self.directory / name
        path.write_text(content)
        return str(path)

    def status(self, stack: str = "") -> str:
        return str(settled(self.http, stack or self.stack)["stack_status"])
