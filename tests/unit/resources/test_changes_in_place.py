"""What the templates of others, on a real OpenStack, do not try: said here at once, where no OpenStack is needed."""

from tests.openstack.public_templates import CASES, LEFT_OUT, NEW_VALUES, TEMPLATES, loaded

from homeostat.resources.registry import type_of


def test_all_that_can_change_in_place_changes_or_is_left_out_for_a_reason() -> None:
    used = {
        each["type"]
        for path in (*TEMPLATES.glob("*/*"), CASES[0].file)
        for each in loaded(path)["resources"].values()
        if each["type"].startswith("OS::")
    }
    can = {name: {each for each, prop in type_of(name).properties.items() if prop.update} for name in used}
    named = {name: {*NEW_VALUES.get(name, {}), *LEFT_OUT.get(name, {})} for name in used}
    assert {name: each for name, each in can.items() if each} == {name: each for name, each in named.items() if each}
