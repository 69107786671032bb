"""Decision which stacks hold secrets, so that their rows are encrypted (ADR 0036).

The decision covers a whole tree of stacks. A secret spreads from parameters and resources by references, through
functions, into nested stacks and out of them again; encrypting the whole tree avoids tracking every path.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from homeostat.resources.discovery import BUILT_IN
from homeostat.resources.registry import register
from homeostat.templates import Compiled

_SECRET = re.compile(r"pass(word|wd|phrase)?$|secret|private_?key|credential|(^|_)token$|^psk$|^payload$", re.I)
_AGENTS = frozenset(("user_data_format", "UserDataFormat"))
"""Properties by which a server gets an agent, together with keys for the agent."""


@lru_cache(maxsize=4096)
def is_secret(name: str) -> bool:
    """Return whether values of a property, parameter or key of this name are secrets."""
    return _SECRET.search(name) is not None


def holds_secrets(compiled: Compiled) -> bool:
    """Return whether a template has hidden parameters, or parameters or properties whose names suggest secrets."""
    hidden = any(parameter.schema.hidden or is_secret(name) for name, parameter in compiled.parameters.items())
    named = compiled.environment.get("encrypted_param_names")
    return bool(hidden or named) or _names_secrets(compiled.raw.get("resources") or compiled.raw.get("Resources") or {})


def _names_secrets(resources: dict[str, Any]) -> bool:
    if any(map(is_secret, resources)):
        return True
    # Alike resources of a template are one object.
    pending: list[Any] = list({id(entry): entry for entry in resources.values()}.values())
    while pending:
        tree = pending.pop()
        if isinstance(tree, dict):
            for key, item in tree.items():
                if isinstance(key, str) and (key in _AGENTS or is_secret(key)) and item not in (None, ""):
                    return True
            tree = tree.values()
        pending += [item for item in tree if isinstance(item, dict | list)]
    return False


def secret_attributes(type_name: str) -> frozenset[str]:
    """Return the names of the secret attributes of a type; "" stands for its reference."""
    kind = register().types.get(type_name)
    if kind is None:
        return frozenset()
    names = {name for name, attribute in kind.attributes.items() if attribute.secret}
    return frozenset((*names, *(("show",) if names else ()), *(("",) if kind.secret_reference else ())))


def makes_secrets(type_names: Iterable[str]) -> bool:
    """Return whether resources of any of these types may generate secrets.

    Every type that is not built in counts, as the output of plug-ins is unknown.
    """
    known = register()
    return any(_makes_secrets(known.types.get(name), known.origins.get(name, "")) for name in type_names)


def _makes_secrets(kind: Any, origin: str) -> bool:
    return kind is not None and (origin != BUILT_IN or kind.secretive)
