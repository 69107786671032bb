"""Work follows the content: equal content is compiled and checked once."""

from typing import Any

import pytest
from sqlalchemy import delete

from homeostat.desired import graphs as shards
from homeostat.desired.compiling import compile_desired
from homeostat.model.desired import Identity
from homeostat.services import graphs
from homeostat.services.pipeline import stages
from homeostat.services.pipeline.request import StackRequest
from homeostat.store import schema
from homeostat.store.stacks import revisions, stacks
from homeostat.store.stacks.contents import Address, Content, address_of
from tests.component.running import Service, double, template

IDENTITY = Identity("s", "web", "p")
READS = {"a": double(value="v"), "b": double(value={"get_attr": ["a", "output"]})}


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Who compiled: a module for each time."""
    names: list[str] = []
    for module in (stages, graphs, shards):

        def noted(*arguments: Any, by: str = module.__name__, **options: Any) -> Any:
            names.append(by)
            return compile_desired(*arguments, **options)

        monkeypatch.setattr(module, "compile_desired", noted)
    return names


def shown(service: Service, stack_id: str) -> Any:
    with service.db.read() as tx:
        row = stacks.get(tx, stack_id)
        assert row is not None
        return service.stack_service.graphs.wanted(tx, row)


def test_the_api_compiles_equal_content_once(compiled: list[str]) -> None:
    service = Service()
    stack_id = service.create(READS)
    service.rest()
    assert compiled == [stages.__name__, shards.__name__]
    first = shown(service, stack_id)
    service.update(stack_id, READS)
    service.rest()
    assert shown(service, stack_id) is first
    assert compiled == [stages.__name__, shards.__name__], "the worker has not compiled it again either"
    service.update(stack_id, {**READS, "b": double(value="other")})
    service.rest()
    assert service.row(stack_id, "b").properties["value"] == "other"
    assert compiled == [stages.__name__, shards.__name__] * 2


def test_content_that_comes_back_brings_its_files_along() -> None:
    service = Service()
    files = {"a file": "text"}
    stack_id = service.create(READS, files=files)
    patch = StackRequest(environment={"parameter_defaults": {"x": "y"}})
    service.stack_service.update(stack_id, patch, patch=True)
    service.work()
    service.update(stack_id, READS)
    with service.db.write() as tx:
        tx.execute(delete(schema.file))  # as a purge does, once no revision names them
    service.update(stack_id, READS, files=files, environment=patch.environment)
    with service.db.read() as tx:
        assert revisions.content_of(tx, stack_id, 4).files == files


def test_the_address_of_stored_content_is_that_of_the_content() -> None:
    service = Service()
    stack_id = service.create(READS, files={"a file": "text"}, environment={"parameter_defaults": {"x": "y"}})
    with service.db.read() as tx:
        stored = revisions.stored(tx, stack_id, 1)
    with service.db.read() as tx:
        assert stored.address == address_of(revisions.content_of(tx, stack_id, 1))


@pytest.mark.parametrize("value", [1, 1.0, "1", True, [1], {"a": 1, "b": 2}, {"b": 2, "a": 1}])
def test_only_equal_content_has_an_equal_address(value: Any) -> None:
    values = [1, 1.0, "1", True, [1], {"a": 1, "b": 2}, {"b": 2, "a": 1}]
    addresses = [address_of(Content("template", {"resources": each})) for each in values]
    own = address_of(Content("template", {"resources": value}))
    assert addresses.count(own) == 1
    assert own != address_of(Content("template", {"resources": value}, parameters={"p": 1}))
    assert own != address_of(Content("template", {"resources": value}, files={"f": ""}))


def test_what_is_not_plain_data_has_no_address() -> None:
    assert address_of(Content("template", {"resources": object()})) is None


def test_alike_resources_share_their_properties() -> None:
    resources = {**{f"r{number}": double(value=["v"]) for number in range(3)}, **READS}
    definitions = compile_desired(Content("template", template(resources)), IDENTITY).definitions
    assert list(definitions) == list(resources)
    assert [definition.name for definition in definitions.values()] == list(resources)
    assert definitions["r0"].properties is definitions["r2"].properties
    assert definitions["b"].requires == ("a",)


def test_an_error_names_the_first_of_alike_resources() -> None:
    wrong = {"type": "OS::Heat::TestResource", "properties": {"nothing": 1}}
    with pytest.raises(Exception, match=r"r0"):
        Service().create({f"r{number}": wrong for number in range(3)})


def test_a_content_counts_with_its_texts_however_few_resources_it_has() -> None:
    kept: shards.ContentCache[str] = shards.ContentCache(10, lambda _: 1)
    small, large = Address("small", 100), Address("large", 9_500)
    kept.put("s", small, "small", 1)
    kept.put("s", Address("other", 100), "other", 1)
    assert kept.peek("s", small) == "small"
    kept.put("s", large, "large", 1)
    assert kept.peek("s", large) == "large"
    assert kept.peek("s", small) is None
