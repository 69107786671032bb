from collections.abc import Iterator

import pytest

from tests.attack.service import Attacked, serving


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    """One service for all attacks of a module: what one of them leaves behind the next one meets."""
    with serving(tmp_path_factory.mktemp("attacked")) as service:
        yield service
