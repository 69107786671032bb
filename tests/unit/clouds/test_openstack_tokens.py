"""Places of the token of a creation: what is written is found, hidden from users, and leaves their own words alone."""

from typing import Any

import pytest

from homeostat.clouds.openstack.tokens import FILTER_MAX, AsId, InMetadata, InTags, InText, Joined, TokenPlace
from homeostat.model.errors import Terminal

TOKEN = "t-1"
TEXT = InText(limit=30)


@pytest.mark.parametrize(
    ("place", "body"),
    [
        (InTags(), {"name": "n"}),
        (InTags(), {"name": "n", "tags": ["mine"]}),
        (InMetadata(), {"name": "n"}),
        (InMetadata(), {"name": "n", "metadata": {"mine": "yes"}}),
        (InText(), {"name": "n"}),
        (InText(), {"name": "n", "description": "mine"}),
        (InText("name"), {"name": "n"}),
        (InText(), {"name": "n", "description": "mine [homeostat:none] after all"}),
        # The folded text of a template ends in a new line.
        (InText(), {"name": "n", "description": "mine\n"}),
        (InText(), {"name": "n", "description": "  mine  "}),
    ],
)
def test_a_token_is_found_and_hidden(place: TokenPlace, body: dict[str, Any]) -> None:
    written = place.write(body, TOKEN)
    assert place.read(written) == TOKEN
    hidden = place.hide(written)
    assert {name: value for name, value in hidden.items() if value} == body
    assert place.read(body) == place.read({}) == ""


@pytest.mark.parametrize("place", [AsId(), Joined()], ids=["id", "joined"])
def test_what_cannot_be_read_from_a_thing(place: TokenPlace) -> None:
    thing = place.write({"name": "n"}, TOKEN)
    assert place.read(thing) == ""
    assert place.hide(thing) == thing
    assert place.filters([TOKEN]) == []


def test_an_id_is_that_of_its_token() -> None:
    assert AsId().write({}, TOKEN) == {"id": AsId.id_of(TOKEN)}
    assert AsId.id_of(TOKEN) != AsId.id_of("t-2")
    assert AsId("uuid").write({}, TOKEN) == {"uuid": AsId.id_of(TOKEN)}


def test_a_text_keeps_room_for_the_token() -> None:
    mark = " [homeostat:t-1]"
    fits = "x" * (30 - len(mark))
    assert TEXT.write({"description": fits}, TOKEN) == {"description": fits + mark}
    with pytest.raises(Terminal, match="it has 15 characters, and may have 14"):
        TEXT.write({"description": fits + "x"}, TOKEN)


def test_many_tokens_are_asked_for_in_portions() -> None:
    tokens = [f"t-{number}" for number in range(FILTER_MAX + 1)]
    first, last = InTags().filters(tokens)
    assert first["tags-any"].split(",") == [f"homeostat:{each}" for each in tokens[:FILTER_MAX]]
    assert last == {"tags-any": f"homeostat:t-{FILTER_MAX}"}
    assert InTags(query="").filters(tokens) == InText().filters(tokens) == InMetadata().filters(tokens) == [{}]
