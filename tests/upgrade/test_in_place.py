"""A state of the last release, in every status, goes on with this version, and back where nothing was contracted."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.databases import KINDS, SQLITE, new_database
from tests.upgrade.installations import CURRENT, PREVIOUS, RELEASE, Installation, installed, version_of
from tests.upgrade.states import CASES, cluster_goes_on, documents, make_cluster

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(params=[*KINDS, pytest.param("mariadb", marks=pytest.mark.mariadb)])
def old(request: pytest.FixtureRequest) -> Iterator[Installation]:
    """The last release on an empty state, once on each kind of database."""
    with tempfile.TemporaryDirectory(prefix="u") as name:
        directory = Path(name)
        if request.param == SQLITE:
            with installed(directory) as found:
                yield found
            return
        with new_database(str(request.getfixturevalue(f"{request.param}_url"))) as url:
            options = ("--database", url, "--encryption-keys", str(directory / "keys"))
            with installed(directory, *options) as found:
                found.run("keys", "generate", "--encryption-keys", str(directory / "keys"))
                yield found


def test_what_the_last_release_has_made_goes_on(old: Installation) -> None:
    new = old.of(CURRENT)
    assert version_of(old) == RELEASE["version"]
    old.serve()
    for case in CASES.all:
        case.make(old)
    make_cluster(old)
    for case in CASES.all:
        old.await_status(case.name, case.status)
    before = documents(old)
    old.kill()

    new.serve()
    assert documents(new) == before
    assert new.run("doctor", *new.options, "--json").json()["checks"]

    # Back, without having changed anything, and forth again
    new.stop()
    back = new.of(PREVIOUS)
    back.serve()
    assert documents(back) == before
    back.kill()

    new.serve()
    for case in CASES.all:
        case.go_on(new)
    cluster_goes_on(new)
    for case in CASES.all:
        if new.status(case.name) != "absent":
            new.run("down", case.name, "-y")
