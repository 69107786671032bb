"""Requests and answers to the letter, as scripts: one a resource of the API (`scripts/*.yaml`, played by gabbi)."""

import json
import unittest
from pathlib import Path
from typing import Any

import pytest
import yaml
from gabbi import handlers, suitemaker
from gabbi.handlers.base import ContentHandler

from tests.wire.running import Running

SCRIPTS = Path(__file__).with_name("scripts")


class Loader(yaml.SafeLoader):
    """With `!json FILE`: what is in a file beside the scripts."""


def _json(loader: Loader, node: yaml.ScalarNode) -> Any:
    return json.loads((SCRIPTS / node.value).read_text())


Loader.add_constructor("!json", _json)


def handlers_of_gabbi() -> list[ContentHandler]:
    return [handler() for handler in handlers.RESPONSE_HANDLERS]


@pytest.mark.parametrize("name", sorted(path.stem for path in SCRIPTS.glob("*.yaml")))
@pytest.mark.shows("CV16")
def test_a_script_is_followed(name: str, service: Running, project: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_URL", service.url)
    host, port = service.url.removeprefix("http://").split(":")
    suite = suitemaker.test_suite_from_dict(
        unittest.TestLoader(),
        name,
        yaml.load((SCRIPTS / f"{name}.yaml").read_text(), Loader),
        str(SCRIPTS),
        host,
        int(port),
        None,
        None,
        prefix=f"/v1/{project}",
        handlers=handlers_of_gabbi(),
    )
    result = unittest.TestResult()
    result.failfast = True  # each request builds on those before
    suite.run(result)
    wrong = [f"{test}: {said}" for test, said in [*result.failures, *result.errors]]
    assert result.testsRun > 0
    assert not wrong, "\n".join(wrong)
