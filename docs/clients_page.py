"""The page of clients: what works is in `clients.yaml`, the releases in the files that the tests install them from."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from docs.type_pages import row

DOCS = Path(__file__).parent
ROOT = DOCS.parent
CLIENTS: Sequence[Mapping[str, Any]] = yaml.safe_load((DOCS / "clients.yaml").read_text("utf-8"))
HEAD = """\
# Clients

Clients that exist, as they are: the tests run each of them against the service, in the release that is named here.
`make test-heavy` has most of them; `make test-clients` has Horizon, Ansible and gophercloud, `make test-customers` has
Magnum.

| client | release | what works | what does not | tests |
|---|---|---|---|---|""".splitlines()


def page() -> str:
    """Return the text of the page."""
    return "\n".join([*HEAD, *(_client(each) for each in CLIENTS), ""])


def _client(client: Mapping[str, Any]) -> str:
    name = f"[{client['name']}](../{client['guide']})" if "guide" in client else str(client["name"])
    tests = ", ".join(f"`{each}`" for each in client["tests"])
    missing = [each for each in client["tests"] if not (ROOT / each).exists()]
    if missing:
        raise ValueError(f"docs/clients.yaml names {', '.join(missing)}, which is not there")
    return row(name, _release(client), client["works"], client.get("listed", ""), tests)


def _release(client: Mapping[str, Any]) -> str:
    if "release" in client:
        return str(client["release"])
    pins = dict(re.findall(r"^([\w.-]+)==([\w.]+)", (ROOT / client["pins"]).read_text("utf-8"), re.MULTILINE))
    return ", ".join(f"{name} {pins[name]}" for name in client["packages"])
