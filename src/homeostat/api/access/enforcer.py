"""A policy: whom each rule allows, by its default or by the operator's file."""

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
from homeostat.api.access.auth import Caller
from homeostat.model.errors import Rejected

LOG = logging.getLogger(__name__)
LOOK_S = 1.0
"""So long a policy file is believed not to have changed."""
VERDICTS_MAX = 16_384
"""So many verdicts are remembered: the same caller asks for the same thing again and again."""
REMOTE = re.compile(r"\bhttps?:")
"""Checks that ask another service, whose answer may change."""
NO_FILE = "/nonexistent/policy.yaml"
"""The library looks for a file of its own in the system's directories unless it is told one."""
Place = tuple[str | int, ...]


class ActiveRules:
    """The rules that hold at one time, and what they were asked. said — the operator's, which override the defaults;
    typed — resource types that have a rule."""

    def __init__(self, said: Mapping[str, str], *, old_defaults: bool) -> None:
        self._enforcer = _enforcer(said, old_defaults=old_defaults)
        names = [name for name in self._enforcer.rules if name.startswith(rules.RESOURCE_TYPES)]
        self.typed = frozenset(name.removeprefix(rules.RESOURCE_TYPES) for name in names)
        asks_others = any(REMOTE.search(text) for text in said.values())
        self._ask = self._asked if asks_others else lru_cache(VERDICTS_MAX)(self._asked)
        self.denied_types = self._denied_types if asks_others else lru_cache(VERDICTS_MAX)(self._denied_types)

    def verdict(self, rule: str, project: str, caller: Caller) -> bool:
        return self._ask(rule, project, replace(caller, token=None))

    def _denied_types(self, project: str, caller: Caller) -> frozenset[str]:
        return frozenset(each for each in self.typed if not self.verdict(rules.RESOURCE_TYPES + each, project, caller))

    def _asked(self, rule: str, project: str, caller: Caller) -> bool:
        try:
            return bool(self._enforcer.enforce(rule, {"project_id": project}, _credentials(caller)))
        except InvalidScope:
            return False


class Policy:
    """The rules that hold. Safe to share between threads.

    Takes: path — of the operator's file, read again when it changes; old_defaults — who was allowed by a default of the
    past still is; monotonic — seconds.
    Fails: ValueError naming the line, when the file is wrong at the start; OSError; a file that becomes wrong later is
    not taken over (and that is logged).
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
        """Does a rule allow this caller what it guards, in this project? Admins have the roles of their own project in
        all others, too."""
        if caller.is_anybody:
            return True
        asks_in = (caller.is_admin and caller.project) or project
        return self._current().verdict(rule, asks_in, caller)

    def check(self, rule: str, caller: Caller, project: str) -> None:
        """Fails: Rejected (Forbidden)."""
        if not self.allows(rule, caller, project):
            raise forbidden(rule.partition(":")[2])

    def known(self, caller: Caller) -> Caller:
        """The caller, with what the rule `context_is_admin` says of it."""
        if caller.is_anybody:
            return caller
        return replace(caller, is_admin=self.allows("context_is_admin", caller, caller.project or ""))

    def denied_types(self, caller: Caller, project: str) -> Collection[str]:
        """Types that the stacks of this caller may not have; `NS::*` are all of a service. Types without a rule are for
        everybody."""
        if caller.is_anybody:
            return ()
        asks_in = (caller.is_admin and caller.project) or project
        return self._current().denied_types(asks_in, replace(caller, token=None))

    def may_use(self, type_name: str, caller: Caller, project: str) -> bool:
        """May stacks of this caller have resources of this type?"""
        if caller.is_anybody:
            return True
        typed = self._current().typed
        guarded = (each for each in (type_name, wildcard_of(type_name)) if each in typed)
        return all(self.allows(rules.RESOURCE_TYPES + each, caller, project) for each in guarded)

    def check_types(self, types: Mapping[str, Place], caller: Caller, project: str) -> None:
        """Fails: Rejected (Forbidden) naming the first type that is not for this caller. types — and where they are."""
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
                    self._stamp = stamp
                    self._holding = ActiveRules(read_policy(self._path), old_defaults=self._old_defaults)
                    LOG.info("the policy file %s was read again", self._path)
            except (OSError, ValueError) as error:
                LOG.error("the policy stays as it was: %s", error)
            return self._holding


def wildcard_of(type_name: str) -> str:
    """`OS::Nova::Flavor` -> `OS::Nova::*`."""
    return type_name.rpartition("::")[0] + "::*"


def forbidden(what: str) -> Rejected:
    return Rejected("Forbidden", f"You are not authorized to use {what}.")


def _credentials(caller: Caller) -> dict[str, Any]:
    """What rules may ask of a caller, by the names that policy files use. What is not known is not there: no rule can
    hold for it."""
    known = {
        "user_id": caller.user_id,
        "user": caller.user,
        "project_id": caller.project,
        "tenant": caller.project,
        "user_domain_id": caller.domain,
    }
    told = {name: value for name, value in known.items() if value}
    if caller.of_system:
        told["system_scope"] = "all"
    return {
        **told,
        "roles": list(caller.roles),
        "is_admin": caller.is_admin,
        "is_admin_project": caller.of_admin_project,
    }


def _stamp(path: Path | None) -> tuple[int, int] | None:
    if path is None:
        return None
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def _enforcer(said: Mapping[str, str], *, old_defaults: bool) -> Enforcer:
    """said — the operator's rules, which override the defaults."""
    conf = cfg.ConfigOpts()
    conf([], project="homeostat", default_config_files=[], default_config_dirs=[])
    made = Enforcer(conf, policy_file=NO_FILE)
    conf.set_override("enforce_new_defaults", not old_defaults, group="oslo_policy")
    conf.set_override("policy_dirs", [], group="oslo_policy")
    made.suppress_deprecation_warnings = True
    made.register_defaults(rules.defaults())
    made.set_rules({name: _parsed(text) for name, text in said.items()}, overwrite=True, use_conf=True)
    made.file_rules = {name: RuleDefault(name, text) for name, text in said.items()}
    made.load_rules()
    made.use_conf = False  # what changes is read by `Policy`, which keeps what works
    return made


def library_enforcer() -> Enforcer:
    """For the tools of the library (entry point `oslo.policy.enforcer`). The file is that of HOMEOSTAT_POLICY_FILE."""
    path = os.environ.get("HOMEOSTAT_POLICY_FILE")
    return _enforcer(read_policy(Path(path)) if path else {}, old_defaults=False)


# -- files -------------------------------------------------------------------------------------------------------------


def read_policy(path: Path) -> dict[str, str]:
    """Rule -> what it allows, of a file in YAML. Fails: OSError; ValueError naming the line that is wrong."""
    try:
        root = yaml.compose(path.read_text(), Loader=yaml.SafeLoader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from error
    if root is None:
        return {}
    if not isinstance(root, yaml.MappingNode):
        raise ValueError(f"{path}, line 1: a map of rules is needed, NAME: CHECK")
    said: dict[str, str] = {}
    lines: dict[str, int] = {}
    for key, value in root.value:
        line = key.start_mark.line + 1
        try:
            name, text = _entry(key, value)
        except ValueError as error:
            raise ValueError(f"{path}, line {line}: {error}") from error
        if name in said:
            raise ValueError(f"{path}, line {line}: {name} is there already, in line {lines[name]}")
        said[name], lines[name] = text, line
    _check_references(said, lines, path)
    return said


def _entry(key: yaml.Node, value: yaml.Node) -> tuple[str, str]:
    if not isinstance(key, yaml.ScalarNode) or not isinstance(value, yaml.ScalarNode):
        raise ValueError('a rule is a name and a text, as in "stacks:create": "role:member"')
    name, text = str(key.value), str(value.value)
    if ":" in name and not name.startswith(rules.RESOURCE_TYPES) and name not in rules.NAMES:
        near = get_close_matches(name, rules.NAMES, 1)
        raise ValueError(f"there is no rule {name}" + (f"; do you mean {near[0]}?" if near else ""))
    if str(_parsed(text)) == "!" and text.strip() not in ("!", "(!)"):
        raise ValueError(f"{name}: the check {text!r} cannot be understood")
    return name, text


def _parsed(text: str) -> Any:
    """A check in the language of rules; one that cannot be understood allows nobody."""
    return RuleDefault("", text).check


def _check_references(said: Mapping[str, str], lines: Mapping[str, int], path: Path) -> None:
    """Fails: ValueError for a rule that names one which is not there, or comes back to itself."""
    checks = {each.name: each.check for each in rules.defaults()}
    checks |= {name: _parsed(text) for name, text in said.items()}
    for name, line in lines.items():
        missing = next((each for each in _named(checks[name]) if each not in checks), None)
        if missing is not None:
            raise ValueError(f"{path}, line {line}: {name} names the rule {missing}, and there is none")
        if _comes_back(name, checks):
            raise ValueError(f"{path}, line {line}: {name} refers to itself, maybe through others")


def _named(check: Any) -> Iterator[str]:
    """The rules that a check refers to."""
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
        each = ahead.pop()
        if each == name:
            return True
        if each not in seen:
            seen.add(each)
            ahead += _named(checks[each]) if each in checks else ()
    return False
