"""`homeostat history` and `homeostat back` against a real service."""

from pathlib import Path

import pytest

from tests.cli.conftest import Home
from tests.cli.templates import QUICK


@pytest.mark.heavy
def test_a_stack_goes_back_to_what_was_wanted_before(service: Home, tmp_path: Path) -> None:
    template = tmp_path / "template.yaml"
    template.write_text(QUICK)
    assert service.run("up", str(template), "turning").code == 0
    assert service.run("up", str(template), "turning", "-P", "word=second").code == 0

    listed = service.run("history", "turning", "--json").json()
    assert [(each["number"], each["newest"]) for each in listed] == [(2, True), (1, False)]
    assert "UPDATE" in service.run("history", "turning").out
    assert "word: second" in service.run("history", "turning", "2").out
    differing = service.run("history", "turning", "1", "2")
    assert "+    word: second" in differing.out
    assert service.run("history", "turning", "1", "2", "--json").json()["diff"][0] == "--- revision 1"

    preview = service.run("back", "turning", "1", "--dry-run")
    assert (preview.code, "~ text" in preview.out) == (0, True)
    assert service.run("show", "turning", "--output", "word").out.strip() == "second"
    assert service.run("back", "turning", "1").code == 0
    assert service.run("show", "turning", "--output", "word").out.strip() == "first"

    refused = service.run("back", "turning", "99")
    assert (refused.code, "The Revision (99)" in refused.err) == (1, True)
