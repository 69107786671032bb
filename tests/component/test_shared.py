"""What an operator gives all stacks, and templates that are fetched."""

from pathlib import Path

import pytest

from homeostat.cli.shared_environments import read_shared
from homeostat.clock import Entropy
from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected
from homeostat.services.pipeline.fetching import with_fetched
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.quotas import Quotas
from homeostat.services.stacks import StackService
from homeostat.store.stacks.contents import Content
from homeostat.store.stacks.revisions import content_of
from tests.component.running import PROJECT, Service, group, template

INNER = "heat_template_version: rocky\nresources: {disk: {type: My::Disk, properties: {size: 1}}}"
URL = "https://example.com/web.yaml"


def service_with(tmp_path: Path, registry: str) -> Service:
    (tmp_path / "web.yaml").write_text(INNER)
    (tmp_path / "all.yaml").write_text(registry)
    service = Service()
    shared = read_shared([tmp_path / "all.yaml"])
    service.stack_service = StackService(service.db, Entropy(), Quotas(), shared=shared)
    return service


def test_an_operator_says_what_types_stand_for(tmp_path: Path) -> None:
    registry = '{resource_registry: {"My::Web": web.yaml, "My::Disk": "OS::Cinder::Volume"}}'
    service = service_with(tmp_path, registry)
    stack_id = service.create({"w": {"type": "My::Web"}, "g": group(2, {"type": "My::Web"})})
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert len(service.cloud.things("volume")) == 3
    service.update(
        stack_id, {"w": {"type": "My::Web"}}, environment={"resource_registry": {"My::Disk": "OS::Heat::None"}}
    )
    service.rest()
    assert service.cloud.things("volume") == {}, "entries of users go before"


def test_a_stack_stays_as_it_is_when_the_operator_says_something_else(tmp_path: Path) -> None:
    """What was given is stored with the revision; the next update takes what is given then."""
    service = service_with(tmp_path, '{resource_registry: {"My::Disk": "OS::Cinder::Volume"}}')
    disk = {"d": {"type": "My::Disk", "properties": {"size": 1}}}
    stack_id = service.create(disk)
    service.stack_service = StackService(service.db, Entropy(), Quotas())
    service.live(120.0)
    assert service.states(stack_id) == {"d": "CREATE_COMPLETE"}
    with pytest.raises(Rejected, match="The Resource Type \\(My::Disk\\) could not be found"):
        service.update(stack_id, disk)


def test_users_do_not_see_what_the_operator_gives(tmp_path: Path) -> None:
    service = service_with(tmp_path, "{parameter_defaults: {size: 2}}")
    sized = {**template({}), "parameters": {"size": {"type": "number"}}}
    compiled, _ = service.stack_service.validate(
        Identity("i", "n", PROJECT), StackRequest(sized, environment={"parameter_defaults": {"other": 1}})
    )
    assert compiled.parameters["size"].value == 2
    assert compiled.environment == {"parameter_defaults": {"other": 1}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{parameters: {a: 1}}", "only resource_registry and parameter_defaults hold for all stacks, not parameters"),
        ('{resource_registry: {"A": gone.yaml}}', "names gone.yaml"),
        ('{resource_registry: {"A": 1}}', "resource_registry.A"),
        ("{colour: {}}", 'wrong section "colour"'),
    ],
)
def test_a_wrong_file_of_the_operator_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "all.yaml").write_text(text)
    with pytest.raises(ValueError, match=r"all\.yaml") as caught:
        read_shared([tmp_path / "all.yaml"])
    assert message in str(caught.value)


def test_templates_named_by_url_are_fetched_once_and_kept() -> None:
    asked: list[str] = []

    def fetch(url: str) -> str:
        asked.append(url)
        return (
            INNER.replace("My::Disk", "https://example.com/disk.yaml") if url == URL else "heat_template_version: rocky"
        )

    environment = {"resource_registry": {"My::Web": URL}}
    resources = {"a": {"type": "My::Web"}, "b": {"type": "My::Web"}, "g": group(2, {"type": "My::Web"})}
    desired = with_fetched(Content("template", template(resources), environment=environment), fetch)
    assert asked == [URL, "https://example.com/disk.yaml"]
    assert sorted(desired.files) == sorted(asked)


def test_what_is_among_the_files_is_not_fetched() -> None:
    desired = Content("template", template({"a": {"type": URL}}), files={URL: "heat_template_version: rocky"})
    assert with_fetched(desired, lambda url: pytest.fail(f"{url} was fetched")) == desired


def test_what_was_fetched_is_stored_with_the_revision() -> None:
    service = Service()

    class Web:
        def fetch(self, url: str) -> str:
            return INNER.replace("My::Disk", "OS::Cinder::Volume")

        def check_now(self, url: str) -> None:
            """Any URL may be asked for."""

    service.stack_service = StackService(service.db, Entropy(), Quotas(), outbound=Web())  # type: ignore[arg-type]
    stack_id = service.create({"w": {"type": URL}})
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    with service.db.read() as tx:
        assert list(content_of(tx, stack_id, 1).files) == [URL]
