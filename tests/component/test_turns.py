"""While one transaction writes, others wait for it: nothing is compiled or serialised meanwhile that can be large."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from homeostat.desired import compiling
from homeostat.services.pipeline.request import StackRequest
from homeostat.store.database import Database
from homeostat.store.sql import bulk
from tests.component.running import Service, group, server, template

INNER = """
heat_template_version: 2018-08-31
parameters: {count: {type: number}}
resources:
  group:
    type: OS::Heat::ResourceGroup
    properties: {count: {get_param: count}, resource_def: {type: OS::Heat::RandomString}}
outputs: {names: {value: {get_attr: [group, refs]}}}
"""


ENCODING = ("encode_update", "encode_upsert")
"""What writes out the rows of a batch, and what was seen of them; a new revision is but one row."""


class Turns:
    """Whether a pass is in the middle of a transaction that writes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.writing = False
        self.calls: list[str] = []
        write = Database.write

        @contextlib.contextmanager
        def marked(db: Database) -> Iterator[Any]:
            with write(db) as tx:
                self.writing = True
                try:
                    yield tx
                finally:
                    self.writing = False

        monkeypatch.setattr(Database, "write", marked)
        for module, name in ((compiling, "compile_template"), *((bulk, name) for name in ENCODING)):
            monkeypatch.setattr(module, name, self._noted(name, getattr(module, name)))

    def _noted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any, **more: Any) -> Any:
            self.calls.append(f"{name} while writing" if self.writing else name)
            return function(*arguments, **more)

        return noted


def test_passes_compile_and_serialise_before_they_write(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    inner = {"type": "inner.yaml", "properties": {"count": {"get_attr": ["n", "value"]}}}
    resources = {
        "n": {"type": "OS::Heat::Value", "properties": {"value": 2}},
        "one": inner,
        "many": group(12, inner),
        "server": server(),
    }
    stack_id = service.begin(resources, files={"inner.yaml": INNER})
    with monkeypatch.context() as patched:
        turns = Turns(patched)
        service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    resources["n"]["properties"] = {"value": 3}
    service.stack_service.update(stack_id, StackRequest(template(resources), files={"inner.yaml": INNER}))
    with monkeypatch.context() as patched:
        later = Turns(patched)
        service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    calls = {*turns.calls, *later.calls}
    assert calls == {"compile_template", *ENCODING}
