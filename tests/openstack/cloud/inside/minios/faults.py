"""Rules by which services fail: a list in the JSON file named by $MINIOS_FAULTS.

Each rule has "kind" ("http", "virt", "volume", "lb" or "dns"), patterns that select what it hits, and what it does. The
file is read again whenever it changes, so that faults come and go while the cloud runs. "times" says how often a rule
fires in one process, "share" which part of what fits it hits, at random; by its "id" it is known again when the file
changes. What was hit by a rule for HTTP is told to the file named by $MINIOS_FAULTS_LOG, a line of JSON each.
"""

import json
import os
import random
import re
import threading
import time
from typing import Any

Rule = dict[str, Any]


class _Rules:
    """Those of the file, and how often each has fired in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stamp: tuple[int, int] | None = None
        self._rules: list[Rule] = []
        self._fired: dict[str, int] = {}

    def first(self, kind: str, facts: dict[str, object]) -> Rule | None:
        with self._lock:
            self._load()
            for rule in self._rules:
                if rule.get("kind") == kind and self._is_left(rule) and _fits(rule, facts) and _strikes(rule):
                    key = _key(rule)
                    self._fired[key] = self._fired.get(key, 0) + 1
                    return rule
        return None

    def _is_left(self, rule: Rule) -> bool:
        times = rule.get("times")
        return times is None or self._fired.get(_key(rule), 0) < int(times)

    def _load(self) -> None:
        path = os.environ.get("MINIOS_FAULTS", "")
        try:
            found = os.stat(path)
        except OSError:
            self._stamp, self._rules, self._fired = None, [], {}
            return
        stamp = (found.st_mtime_ns, found.st_ino)
        if stamp != self._stamp:
            with open(path) as file:
                self._rules = json.load(file)
            keys = {_key(rule) for rule in self._rules}
            self._fired = {key: count for key, count in self._fired.items() if key in keys}
            self._stamp = stamp


def _key(rule: Rule) -> str:
    return str(rule.get("id") or json.dumps(rule, sort_keys=True))


def _fits(rule: Rule, facts: dict[str, object]) -> bool:
    return all(re.search(rule[name], str(fact or "")) for name, fact in facts.items() if rule.get(name))


def _strikes(rule: Rule) -> bool:
    return random.random() < float(rule.get("share", 1))


_rules = _Rules()


def find(kind: str, **facts: object) -> Rule | None:
    """The first rule that fits all facts, and may fire once more. None: nothing shall fail."""
    return _rules.first(kind, facts)


def log(rule: Rule, **facts: object) -> None:
    """Tell that a rule has hit something. One write: several processes have the file."""
    path = os.environ.get("MINIOS_FAULTS_LOG")
    if path:
        with open(path, "a") as file:
            file.write(json.dumps({"id": rule.get("id"), **facts}) + "\n")


def check(kind: str, **facts: object) -> None:
    """Do what the rule of a driver says: wait, fail. Fails: RuntimeError."""
    rule = find(kind, **facts)
    if rule is None:
        return
    time.sleep(float(rule.get("delay") or 0))
    if rule.get("error"):
        raise RuntimeError(rule["error"])
