"""The policy in effect: evaluates rules, by their defaults or the operator's policy file."""

import logging
import os
import re
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from oslo_config import cfg
from oslo_policy.policy import Enforcer, InvalidScope, RuleDefault

from homeostat.api.access import rules
from homeostat.model.caller import Caller
from homeostat.model.errors import Rejected

LOG = logging.getLogger(__name__)
LOOK_S = 1.0
"""Interval between two checks of the policy file for changes."""
VERDICTS_MAX = 16_384
"""Cached verdicts: the same caller makes the same requests again and again."""
REMOTE = re.compile(r"\bhttps?:")
"""Checks that query another service: their answer may change, so it is not cached."""
NO_FILE = "/nonexistent/policy.yaml"
"""A path that does not exist; otherwise oslo.policy looks for a policy file in the system's directories."""
Place = tuple[str | int, ...]


class ActiveRules:
    """One version of the rules, with a cache of verdicts.

    Args:
        overrides: Rules of the policy file, which override the defaults.

    Attributes:
        typed: Resource types that have a rule; `NS::*` stands for all types of a service.
    """

    def __init__(self, overrides: Mapping[str, str], *, old_defaults: bool) -> None:
        self._enforcer = _enforcer(overrides, old_defaults=old_defaults)
        names = [name for name in self._enforcer.rules if name.startswith(rules.RESOURCE_TYPES)]
        self.typed = frozenset(name.removeprefix(rules.RESOURCE_TYPES) for name in names)
        queries_servers = any(REMOTE.search(text) for text in overrides.values())
        self._verdict = self._evaluate if queries_servers else lru_cache(VERDICTS_MAX)(self._evaluate)
        self.denied_types = self._denied_types if queries_servers else lru_cache(VERDICTS_MAX)(self._denied_types)

    def verdict(self, rule: str, project: str, caller: Caller) -> bool:
        # The token would make each cache entry good for one token only; no rule reads it.
        return self._verdict(rule, project, replace(caller, token=None))

    def _denied_types(self, project: str, caller: Caller) -> frozenset[str]:
        denied = {name for name in self.typed if not self.verdict(rules.RESOURCE_TYPES + name, project, caller)}
        for type_name, rule_names in rules.OF_TYPES.items():
            if not all(self.verdict(rule, project, caller) for rule in rule_names):
                denied.add(type_name)
        return frozenset(denied)

    def _evaluate(self, rule: str, project: str, caller: Caller) -> bool:
        try:
            return bool(self._enforcer.enforce(rule, {"project_id": project}, _credentials(caller)))
        except InvalidScope:
            return False


class Policy:
    """The authorization policy. Safe to share between threads.

    The policy file is read again when it changes. If it becomes invalid later, that is logged and the last valid rules
    stay in effect.

    Args:
        path: The operator's policy file; None for the defaults alone.
        old_defaults: Also allow what the deprecated defaults allowed.
        monotonic: Clock, in seconds.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is invalid at the start; names the line.
    """

    def __init__(
        self, path: Path | None = None, *, old_defaults: bool = False, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._old_defaults = old_defaults
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._stamp = _stamp(path)
        self._looked_at = monotonic()
        self._holding = ActiveRules(read_policy(path) if path is not None else {}, old_defaults=old_defaults)

    def allows(self, rule: str, caller: Caller, project: str) -> bool:
        """Return whether a rule allows its operation to this caller in this project.

        Admins have the roles of their own project in all projects.
        """
        if caller.is_anybody:
            return True
        # Rules compare the project with the caller's own project, so an admin's own project is checked.
        project_in_scope = (caller.is_admin and caller.project) or project
        return self._current().verdict(rule, project_in_scope, caller)

    def check(self, rule: str, caller: Caller, project: str) -> None:
        """Raise Rejected (Forbidden) unless the rule allows its operation to this caller."""
        if not self.allows(rule, caller, project):
            raise forbidden(rule.partition(":")[2])

    def known(self, caller: Caller) -> Caller:
        """Return the caller with `is_admin` set by the rule `context_is_admin`."""
        if caller.is_anybody:
            return caller
        return replace(caller, is_admin=self.allows("context_is_admin", caller, caller.project or ""))

    def denied_types(self, caller: Caller, project: str) -> Collection[str]:
        """Return the types that stacks of this caller may not have; `NS::*` stands for all types of a service.

        Types without a rule are allowed, unless a rule denies the caller the service's operations for the type
        (`rules.OF_TYPES`).
        """
        if caller.is_anybody:
            return ()
        project_in_scope = (caller.is_admin and caller.project) or project
        return self._current().denied_types(project_in_scope, replace(caller, token=None))

    def may_use(self, type_name: str, caller: Caller, project: str) -> bool:
        """Return whether stacks of this caller may have resources of this type; see `denied_types`."""
        if caller.is_anybody:
            return True
        typed = self._current().typed
        guarded = [rules.RESOURCE_TYPES + name for name in (type_name, wildcard_of(type_name)) if name in typed]
        return all(self.allows(rule, caller, project) for rule in (*guarded, *rules.OF_TYPES.get(type_name, ())))

    def check_types(self, types: Mapping[str, Place], caller: Caller, project: str) -> None:
        """Raise Rejected (Forbidden) naming the first type that this caller may not use.

        Args:
            types: Type name -> place in the template.
        """
        for type_name in types:
            if not self.may_use(type_name, caller, project):
                raise forbidden(type_name)

    def _current(self) -> ActiveRules:
        now = self._monotonic()
        if self._path is None or now < self._looked_at + LOOK_S:
            return self._holding
        with self._lock:
            self._looked_at = now
            try:
                stamp = _stamp(self._path)
                if stamp != self._stamp:
                    # Stored before reading: an invalid file is reported once, not every second.
                    self._stamp = stamp
                    self._holding = ActiveRules(read_policy(self._path), old_defaults=self._old_defaults)
                    LOG.info("the policy file %s was read again", self._path)
            except (OSError, ValueError) as error:
                LOG.error("the policy stays as it was: %s", error)
            return self._holding


def wildcard_of(type_name: str) -> str:
    """Return the wildcard of a type's service: `OS::Nova::Flavor` -> `OS::Nova::*`."""
    return type_name.rpartition("::")[0] + "::*"


def forbidden(what: str) -> Rejected:
    return Rejected("Forbidden", f"You are not authorized to use {what}.")


def _credentials(caller: Caller) -> dict[str, Any]:
    """Return the attributes of a caller for checks, by their names in policy files.

    Unknown values are omitted, so that no rule matches on them.
    """
    known = {
        "user_id": caller.user_id,
        "user": caller.user,
        "project_id": caller.project,
        "tenant": caller.project,
        "user_domain_id": caller.domain,
    }
    attributes = {name: value for name, value in known.items() if value}
    if caller.of_system:
        attributes["system_scope"] = "all"
    return {
        **attributes,
        "roles": list(caller.roles),
        "is_admin": caller.is_admin,
        "is_admin_project": caller.of_admin_project,
    }


def _stamp(path: Path | None) -> tuple[int, int] | None:
    if path is None:
        return None
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def _enforcer(overrides: Mapping[str, str], *, old_defaults: bool) -> Enforcer:
    """Build oslo.policy's enforcer.

    Args:
        overrides: Rules of the policy file, which override the defaults.
    """
    conf = cfg.ConfigOpts()
    conf([], project="homeostat", default_config_files=[], default_config_dirs=[])
    enforcer = Enforcer(conf, policy_file=NO_FILE)
    conf.set_override("enforce_new_defaults", not old_defaults, group="oslo_policy")
    conf.set_override("policy_dirs", [], group="oslo_policy")
    enforcer.suppress_deprecation_warnings = True
    enforcer.register_defaults(rules.defaults())
    enforcer.set_rules({name: _parsed(text) for name, text in overrides.items()}, overwrite=True, use_conf=True)
    enforcer.file_rules = {name: RuleDefault(name, text) for name, text in overrides.items()}
    enforcer.load_rules()
    enforcer.use_conf = False  # `Policy` reloads the file, and keeps the last valid rules
    return enforcer


def library_enforcer() -> Enforcer:
    """Return an enforcer for the tools of oslo.policy (entry point `oslo.policy.enforcer`).

    HOMEOSTAT_POLICY_FILE names the policy file.
    """
    path = os.environ.get("HOMEOSTAT_POLICY_FILE")
    return _enforcer(read_policy(Path(path)) if path else {}, old_defaults=False)


# -- files -------------------------------------------------------------------------------------------------------------


def read_policy(path: Path) -> dict[str, str]:
    """Read a policy file in YAML.

    Returns:
        Rule -> check.

    Raises:
        OSError: The file cannot be read.
        ValueError: Names the invalid line.
    """
    try:
        # Composed nodes have line numbers; loaded values have not.
        root = yaml.compose(path.read_text(), Loader=yaml.SafeLoader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from error
    if root is None:
        return {}
    if not isinstance(root, yaml.MappingNode):
        raise ValueError(f"{path}, line 1: a map of rules is needed, NAME: CHECK")
    overrides: dict[str, str] = {}
    lines: dict[str, int] = {}
    for key, value in root.value:
        line = key.start_mark.line + 1
        try:
            name, text = _entry(key, value)
        except ValueError as error:
            raise ValueError(f"{path}, line {line}: {error}") from error
        if name in overrides:
            raise ValueError(f"{path}, line {line}: {name} is there already, in line {lines[name]}")
        overrides[name], lines[name] = text, line
    _check_references(overrides, lines, path)
    return overrides


def _entry(key: yaml.Node, value: yaml.Node) -> tuple[str, str]:
    if not isinstance(key, yaml.ScalarNode) or not isinstance(value, yaml.ScalarNode):
        raise ValueError('a rule is a name and a text, as in "stacks:create": "role:member"')
    name, text = str(key.value), str(value.value)
    if ":" in name and not name.startswith(rules.RESOURCE_TYPES) and name not in rules.NAMES:
        near = get_close_matches(name, rules.NAMES, 1)
        raise ValueError(f"there is no rule {name}" + (f"; do you mean {near[0]}?" if near else ""))
    # oslo.policy reports no syntax errors: it turns an invalid check into "!".
    if str(_parsed(text)) == "!" and text.strip() not in ("!", "(!)"):
        raise ValueError(f"{name}: the check {text!r} cannot be understood")
    return name, text


def _parsed(text: str) -> Any:
    """Parse a check; an invalid check becomes "!", which allows nobody."""
    return RuleDefault("", text).check


def _check_references(overrides: Mapping[str, str], lines: Mapping[str, int], path: Path) -> None:
    """Raise ValueError for a rule that refers to a missing rule, or, directly or indirectly, to itself."""
    checks = {rule.name: rule.check for rule in rules.defaults()}
    checks |= {name: _parsed(text) for name, text in overrides.items()}
    for name, line in lines.items():
        missing = next((rule for rule in _named(checks[name]) if rule not in checks), None)
        if missing is not None:
            raise ValueError(f"{path}, line {line}: {name} names the rule {missing}, and there is none")
        if _comes_back(name, checks):
            raise ValueError(f"{path}, line {line}: {name} refers to itself, maybe through others")


def _named(check: Any) -> Iterator[str]:
    """Yield the names of the rules that a check refers to."""
    if getattr(check, "kind", None) == "rule":
        yield check.match
    for inner in getattr(check, "rules", ()):
        yield from _named(inner)
    if hasattr(check, "rule"):
        yield from _named(check.rule)


def _comes_back(name: str, checks: Mapping[str, Any]) -> bool:
    seen: set[str] = set()
    ahead = list(_named(checks[name]))
    while ahead:
        referenced = ahead.pop()
        if referenced == name:
            return True
        if referenced not in seen:
            seen.add(referenced)
            ahead += _named(checks[referenced]) if referenced in checks else ()
    return False
