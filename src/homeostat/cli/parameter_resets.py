"""Parameters that an update without `--existing` sets back to the defaults of its template."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from homeostat.cli.client import Client

Wire = Mapping[str, Any]
HIDDEN = "******"
"""The value of a hidden parameter, as the API shows it."""
VALUE_MAX = 40
"""Characters of a value that are shown."""


def reset_parameters(client: Client, stack: Wire, body: Wire) -> Iterator[str]:
    """Yield the parameters that were given a value before and that `body` does not name, in words.

    Args:
        stack: As it is now, with the values of its parameters; those of hidden ones are not shown.
        body: Template and parameters of the update, and its environment.
    """
    from homeostat.templates import parse_template

    template = parse_template(body["template"])
    declared = template.get("parameters") or template.get("Parameters") or {}
    (newest,) = client.revisions(stack, 1)
    before = client.revision(stack, newest["number"])["environment"].get("parameters") or {}
    named = {**(body["environment"].get("parameters") or {}), **body["parameters"]}
    for name in before:
        default = _default(declared.get(name))
        if name in named or default is None or str(stack["parameters"].get(name)) == str(default):
            continue
        shown = HIDDEN if stack["parameters"].get(name) == HIDDEN else _shown(default)
        yield f"{name}: {_shown(stack['parameters'].get(name))} → {shown}, the default"


def _default(parameter: Any) -> Any:
    """Return the default of a declared parameter; None where there is none, and a value has to be given anyway."""
    if not isinstance(parameter, Mapping):
        return None
    return parameter.get("default", parameter.get("Default"))


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= VALUE_MAX else f"{text[:VALUE_MAX]}…"
