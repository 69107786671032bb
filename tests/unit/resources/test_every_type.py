"""What holds for each type there is. `tests/component/test_type_lives.py` has the life of a resource of each."""

import pytest
from tests.unit.resources.type_values import (
    CHANGED,
    LEFT,
    LIVING,
    OUTSIDE,
    RETIRED,
    changed,
    example,
    fits,
    other,
    shown,
)

from docs import type_pages
from homeostat.model.errors import Rejected
from homeostat.model.observed import Observation, Presence
from homeostat.resources.base import WORDS, Thing
from homeostat.resources.registry import resource_type, types
from homeostat.resources.schema import UNKNOWN, ValueType


@pytest.mark.parametrize("name", LIVING)
def test_each_property_alone_changes_as_the_schema_says(name: str) -> None:
    kind, values = types()[name], example(name)
    old = kind.complete(kind.check(values))
    all_changed = changed(name)
    for key, prop in shown(kind):
        new = {**values, key: all_changed.get(key)} if prop.update else {**values, key: other(prop, key, old.get(key))}
        if prop.immutable or new[key] is None or not fits(kind, new):
            continue
        after = kind.complete(kind.check(new))
        differing = frozenset(each for each in after if after[each] != old.get(each))
        if differing and not (prop.update and CHANGED.get(name, {}).get(key) is LEFT):
            assert bool(kind.replacement_reason(old, after, differing)) is not prop.update, key


@pytest.mark.parametrize("name", OUTSIDE)
def test_nothing_drifts_from_what_was_asked_for(name: str) -> None:
    kind = types()[name]
    values = kind.complete(kind.check(changed(name)))
    look = Observation(Presence.PRESENT, "h-1", kind.spec(values, "stack-it-abc"), seen_at=100.0)
    assert kind.drift(Thing("abcdefghijkl", "it", "stack-it-abc", values, look, "h-1")) == ()


@pytest.mark.parametrize("name", OUTSIDE)
def test_an_empty_text_means_none_but_where_it_is_a_value_of_its_own(name: str) -> None:
    """Templates have parameters with the default "" where they mean none; services refuse it in most places."""
    kind, values = types()[name], example(name)
    for key, prop in shown(kind):
        if prop.kind is not ValueType.STRING or prop.blank or prop.required or key in WORDS or prop.default is not None:
            continue
        without = {each: value for each, value in values.items() if each != key}
        if fits(kind, without) and fits(kind, {**without, key: None}):
            empty = kind.spec(kind.complete({**kind.check(without), key: ""}), "stack-it-abc")
            assert empty == kind.spec(kind.complete(kind.check(without)), "stack-it-abc"), key


@pytest.mark.parametrize("name", LIVING)
def test_what_is_not_known_yet_is_no_error(name: str) -> None:
    kind = types()[name]
    kind.check(dict.fromkeys(example(name), UNKNOWN))


@pytest.mark.parametrize("name", LIVING)
def test_the_reference_says_what_each_type_is_referred_by(name: str) -> None:
    """The reference documentation says it in the words of the method's docstring."""
    assert type_pages.referred(types()[name])


@pytest.mark.parametrize("name", RETIRED)
def test_a_retired_type_says_what_to_use_instead(name: str) -> None:
    kind = resource_type(name)
    assert kind.support.hidden
    with pytest.raises(Rejected, match="has been retired") as refused:
        kind.check({"anything": 1}, ("resources", "old", "properties"))
    assert kind.support.message in refused.value.detail
