"""Types of the service itself: random text, values, test doubles and the type that does nothing."""

import json
from collections.abc import Callable, Mapping, Sequence
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits, hexdigits, octdigits
from typing import Any

from homeostat.model.errors import Rejected
from homeostat.model.observed import READY, Condition, Remedy, Verdict
from homeostat.resources.base import Props, ResourceType, Thing
from homeostat.resources.rules import require
from homeostat.resources.schema import (
    UNKNOWN,
    ZERO,
    Attribute,
    Property,
    ValueType,
    anything,
    between,
    boolean,
    coerce_value,
    custom,
    integer,
    listing,
    mapping,
    number,
    one_of,
    text,
)

CHARACTERS: Mapping[str, str] = {
    "lettersdigits": ascii_letters + digits,
    "letters": ascii_letters,
    "lowercase": ascii_lowercase,
    "uppercase": ascii_uppercase,
    "digits": digits,
    "hexdigits": hexdigits,
    "octdigits": octdigits,
}


class RandomString(ResourceType):
    secretive = secret_reference = True
    name = "OS::Heat::RandomString"
    description = "Text of random characters, generated once and stored."
    properties = {
        "length": integer("How many characters.", default=32, constraints=(between(1, 512),)),
        "sequence": text(
            "Class of characters; use character_classes.", hidden=True, constraints=(one_of(*CHARACTERS),)
        ),
        "character_classes": listing(
            "Classes of characters to draw from.",
            default=[{"class": "lettersdigits", "min": 1}],
            items=mapping(
                fields={
                    "class": text("Name of the class.", default="lettersdigits", constraints=(one_of(*CHARACTERS),)),
                    "min": integer("At least so many of it.", default=1, constraints=(between(1, 512),)),
                }
            ),
        ),
        "character_sequences": listing(
            "Characters of one's own to draw from.",
            items=mapping(
                fields={
                    "sequence": text("The characters.", required=True),
                    "min": integer("At least so many of them.", default=1, constraints=(between(1, 512),)),
                }
            ),
        ),
        "salt": text("Changing it makes a new text."),
    }
    attributes = {"value": Attribute("The random text.", live=True, secret=True)}

    def complete(self, values: Props) -> dict[str, Any]:
        """Add the defaults; the deprecated `sequence` counts as an additional class."""
        sequence, classes = values.get("sequence"), values.get("character_classes")
        if not sequence:
            return super().complete(values)
        more = classes if isinstance(classes, list) else []
        return super().complete({**values, "sequence": None, "character_classes": [{"class": sequence}, *more]})

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        wanted = self.complete(values)
        minimums = [minimum for _, minimum in _pools(wanted)]
        if UNKNOWN in (wanted["length"], *minimums):
            return
        require(
            sum(minimums) <= wanted["length"],
            f"length ({wanted['length']}) is less than the sum of the minimums ({sum(minimums)}); raise it",
            path,
        )

    def build_object(self, values: Props, token: str, entropy: Callable[[int], bytes]) -> dict[str, Any]:
        """Draw the minimum of each pool first, the rest from all pools together, then shuffle."""
        pools = _pools(values)
        drawn = [pool[_below(len(pool), entropy)] for pool, minimum in pools for _ in range(minimum)]
        union = "".join(pool for pool, _ in pools)
        drawn += [union[_below(len(union), entropy)] for _ in range(values["length"] - len(drawn))]
        for last in range(len(drawn) - 1, 0, -1):
            other = _below(last + 1, entropy)
            drawn[last], drawn[other] = drawn[other], drawn[last]
        return {"value": "".join(drawn)}

    def reference(self, thing: Thing) -> Any:
        """Its random text."""
        return thing.seen.properties.get("value") or thing.name


def _pools(values: Props) -> list[tuple[str, Any]]:
    """Return (characters, minimum) of every class and sequence."""
    classes = values.get("character_classes")
    sequences = values.get("character_sequences")
    pools: list[tuple[str, Any]] = []
    for item in classes if isinstance(classes, list) else ():
        if item is not UNKNOWN:
            pools.append((CHARACTERS.get(item["class"], ""), item["min"]))
    for item in sequences if isinstance(sequences, list) else ():
        if item is not UNKNOWN:
            pools.append((item["sequence"], item["min"]))
    return pools


def _below(limit: int, entropy: Callable[[int], bytes]) -> int:
    """Draw a number in [0, limit); with 8 bytes the bias of the remainder is negligible."""
    return int.from_bytes(entropy(8), "big") % limit


class TestResource(ResourceType):
    """A test double that takes time and fails on demand."""

    __test__ = False
    name = "OS::Heat::TestResource"
    description = "A stand-in that takes time, fails or is replaced as its properties say."
    properties = {
        "value": text("What the attribute output gives.", default="test_string", update=True),
        "update_replace_value": text("Changing it replaces the resource."),
        "fail": boolean("Fail once the wait is over.", default=False, update=True),
        "update_replace": boolean("Replace when the value changes.", default=False, update=True),
        "wait_secs": number("Seconds that every action takes; -1 means for ever.", default=0, update=True),
        "action_wait_secs": mapping(
            "Seconds that one action takes, instead of wait_secs.",
            update=True,
            fields={
                "create": number("Seconds to create.", update=True),
                "update": number("Seconds to update.", update=True),
                "delete": number("Seconds to delete.", update=True),
            },
        ),
        "attr_wait_secs": number("Accepted for old templates.", default=0, update=True),
        "constraint_prop_secs": number(
            "Accepted for old templates.", default=0, update=True, constraints=(custom("test_constr"),)
        ),
        "client_name": text("Accepted for old templates.", default="", update=True),
        "entity_name": text("Accepted for old templates.", default="", update=True),
    }
    attributes = {"output": Attribute("The value.", ValueType.ANY, live=True)}

    def build_object(self, values: Props, token: str, entropy: Callable[[int], bytes]) -> dict[str, Any]:
        return {"value": values.get("value")}

    def replacement_reason(self, before: Props, after: Props, changed: frozenset[str]) -> str:
        if after["update_replace"] and "value" in changed:
            return "value changed and update_replace is set"
        return super().replacement_reason(before, after, changed)

    def fitness(self, thing: Thing, now: float) -> Verdict:
        """Judge by time and properties alone; a resource being deleted counts as absent when its wait is over."""
        properties = thing.properties
        wait_s = (properties["action_wait_secs"] or {}).get(thing.action.lower())
        if wait_s is None:
            wait_s = properties["wait_secs"]
        if wait_s < 0:
            return Verdict(Condition.PENDING, "it waits for ever, as its properties say")
        due_at = thing.acted_at + wait_s
        if now < due_at:
            return Verdict(Condition.PENDING, f"it takes {wait_s} s, as its properties say", due_at=due_at)
        if thing.action == "DELETE":
            return Verdict(Condition.ABSENT, "its deletion is over")
        if properties["fail"]:
            return Verdict(Condition.BROKEN, f"Test Resource failed {thing.name}", Remedy.MANUAL)
        return READY

    def attribute(self, thing: Thing, name: str) -> Any:
        return thing.properties["value"] if name == "output" else super().attribute(thing, name)


VALUE_KINDS: Mapping[str, Property] = {
    "string": text(),
    "number": number(),
    "comma_delimited_list": listing(items=text()),
    "json": anything(),
    "boolean": boolean(),
}


JSON_TEXT_MAX = 1024 * 1024
"""Longest JSON text that is parsed, in characters: the parsed values take far more memory than the text."""


class Value(ResourceType):
    name = "OS::Heat::Value"
    description = "A named value: the result of an expression that other resources and outputs may read."
    properties = {
        "value": anything("The expression.", required=True, update=True),
        "type": text("What the value is brought to.", update=True, constraints=(one_of(*VALUE_KINDS),)),
    }
    attributes = {"value": Attribute("The value, brought to its type.", ValueType.ANY)}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        kind = values.get("type")
        if kind is not UNKNOWN:
            typed(values.get("value"), kind, (*path, "value"))

    def build_object(self, values: Props, token: str, entropy: Callable[[int], bytes]) -> dict[str, Any]:
        return {"value": typed(values.get("value"), values.get("type"))}

    def attribute(self, thing: Thing, name: str) -> Any:
        if name != "value":
            return super().attribute(thing, name)
        return typed(thing.properties["value"], thing.properties["type"])


def typed(value: Any, kind: str | None, path: Sequence[str | int] = ()) -> Any:
    """Convert a value to a type of parameters; without a type the value stays unchanged.

    Raises:
        Rejected: The value cannot be converted.
    """
    if not kind or value is UNKNOWN:
        return value
    if kind == "comma_delimited_list" and isinstance(value, str):
        value = [item.strip() for item in value.split(",")] if value else []
    if kind == "json":
        return _json(value, path)
    return coerce_value(VALUE_KINDS[kind], value, path)


def _json(value: Any, path: Sequence[str | int]) -> Any:
    if value is None or value == "":
        return dict(ZERO[ValueType.MAP])
    if isinstance(value, Mapping | list):
        return value
    if isinstance(value, str) and len(value) > JSON_TEXT_MAX:
        message = f"JSON text of {len(value)} characters is more than {JSON_TEXT_MAX}"
        raise Rejected("StackValidationFailed", message, error="Property error", path=path)
    try:
        parsed = json.loads(value)
    except (TypeError, ValueError) as error:
        message = f"Value must be a map, a list or JSON text of one; got {value!r}"
        raise Rejected("StackValidationFailed", message, error="Property error", path=path) from error
    require(isinstance(parsed, dict | list), f"JSON text must hold a map or a list; got {value!r}", tuple(path))
    return parsed


class Nothing(ResourceType):
    name = "OS::Heat::None"
    description = "Accepts any property, answers null to any attribute, does nothing: stands in for what is not wanted."
    open_schema = True

    def replacement_reason(self, before: Props, after: Props, changed: frozenset[str]) -> str:
        return ""

    def attribute(self, thing: Thing, name: str) -> Any:
        return None

    def resolve(self, thing: Thing, name: str, path: Sequence[str | int] = ()) -> Any:
        """Return null, whatever the path."""
        return None


TYPES = [RandomString, TestResource, Value, Nothing]
