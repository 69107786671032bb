"""The service's side of `forwarder.py`: its configuration, its process and its reported state.

Configuration, as in config.json of the thing's directory:
    listeners   [{id, address, port, protocol, pool: id or None, connection_limit, allowed_cidrs}]
    pools       {id: {algorithm, members: [{id, address, port, weight, monitored, check_address, check_port}],
                monitor: {type, delay, timeout, max_retries, http_method, url_path, expected_codes} or None}}
    mirror      {from, to}: instead of both, serve at the address `from` everything that is served at `to`
"""

import json
from collections.abc import Mapping
from typing import Any

from homeostat.clouds.local import processes
from homeostat.clouds.local.files import write_whole

STATE = "state.json"
"""File in the directory with the state that the process reports."""


def ensure(directory: str, configuration: Mapping[str, Any]) -> None:
    """Run a forwarder with this configuration in the directory; a running one reads it within 0.1 s."""
    text = json.dumps(configuration, sort_keys=True)
    path = f"{directory}/config.json"
    if _read(path) != text:
        write_whole(path, text)
    if processes.life(directory) is None:
        processes.end([directory])
        write_whole(f"{directory}/{STATE}", "{}")
        processes.launch(directory, {}, processes.FORWARDER)


def state(directory: str) -> dict[str, Any]:
    """Return the reported state: {listeners: {id: problem or ""}, members: {id: operating status}}, or {}."""
    text = _read(f"{directory}/{STATE}")
    reported: dict[str, Any] = json.loads(text) if text else {}
    return reported


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""
