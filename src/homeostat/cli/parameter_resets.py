"""Parameters that an update without `--existing` resets to the defaults of its template."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from homeostat.cli.client import Client

Wire = Mapping[str, Any]
HIDDEN = "******"
"""The value of a hidden parameter, as the API shows it."""
VALUE_MAX = 40
"""Maximum characters of a value in output."""


def reset_parameters(client: Client, stack: Wire, body: Wire) -> Iterator[str]:
    """Describe each parameter that has a value now, is missing in `body`, and so returns to its default.

    Args:
        stack: The stack in the format of the API, in which values of hidden parameters are masked.
        body: Template, environment and parameters of the update.
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
        new = HIDDEN if stack["parameters"].get(name) == HIDDEN else _shown(default)
        yield f"{name}: {_shown(stack['parameters'].get(name))} → {new}, the default"


def _default(parameter: Any) -> Any:
    """Return the default of a declared parameter; None without a default, when the update needs a value anyway."""
    if not isinstance(parameter, Mapping):
        return None
    return parameter.get("default", parameter.get("Default"))


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= VALUE_MAX else f"{text[:VALUE_MAX]}…"
