"""The rules of all routes, and texts about them: a sample policy file, and the changes of a given file."""

import textwrap
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from fastapi.routing import APIRoute
from oslo_policy.policy import RuleDefault

from homeostat.api.access import rules
from homeostat.api.access.policy import rule_of
from homeostat.api.orchestration.routers import ROUTERS
from homeostat.clustering.wire.routers import ROUTERS as CLUSTERING

HEAD = """\
# Who may do what. Every line shows a default; take the comment away to change it.
# A check is made of role:NAME, project_id:%(project_id)s, user_id:ID, rule:NAME, @ (everybody), ! (nobody),
# and, or, not, brackets. The file is read again when it changes.
"""


def sample() -> str:
    """Return a policy file with all defaults in comments, which changes nothing."""
    return "\n".join([HEAD, *(line for rule in list_rules() for line in _entry(rule))])


def _entry(rule: RuleDefault) -> Iterator[str]:
    yield from textwrap.wrap(rule.description or "", 110, initial_indent="# ", subsequent_indent="# ")
    for operation in getattr(rule, "operations", ()):
        yield f"# {operation['method']} {operation['path']}"
    yield f'#"{rule.name}": "{rule.check_str}"'
    yield ""


def rows(overrides: Mapping[str, str] = MappingProxyType({})) -> list[tuple[str, str, str]]:
    """Return name, allowed callers (in words if possible) and description of each rule that guards an operation.

    Args:
        overrides: Rules of a policy file, which override the defaults.
    """
    return [
        (rule.name, in_words(overrides.get(rule.name, rule.check_str)), rule.description or "")
        for rule in list_rules()
        if ":" in rule.name
    ]


def in_words(check: str) -> str:
    return rules.WORDS.get(check, check)


def changes(overrides: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return the changes of a policy file: rule, its default ("" for an additional rule) and the file's check."""
    known = {rule.name: rule.check_str for rule in list_rules()}
    return [(name, known.get(name, ""), text) for name, text in overrides.items() if known.get(name) != text]


def list_rules() -> list[RuleDefault]:
    """Return all rules with their defaults (entry point `oslo.policy.policies`)."""
    named: dict[str, list[tuple[str, str]]] = {}
    for route in (route for router in (*ROUTERS, *CLUSTERING) for route in router.routes):
        rule = rule_of(route)
        if isinstance(route, APIRoute) and rule is not None:
            named.setdefault(rule, []).extend((method, route.path_format) for method in sorted(route.methods or ()))
    return rules.defaults(named)
