"""What is read and is not there is an error, never a silent null: the tables of the reference, line by line."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from homeostat.api.orchestration import outputs
from homeostat.clouds.port import ChangeNotice
from homeostat.clouds.simulated import CloudBehaviour
from homeostat.model.errors import Rejected
from homeostat.services.graphs import Graphs
from homeostat.services.pipeline.request import StackRequest
from tests.component.running import Service, group, server

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "absent-values.md"
TEMPLATE, NESTED = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


class Line(NamedTuple):
    """A line of the tables: what is read, what becomes of it (gives, fails, misses, refused), and the value or text."""

    read: Any
    outcome: str
    text: str

    @property
    def is_reported_in_outputs(self) -> bool:
        """Whether outputs of a template that is taken report what is refused in a resource."""
        return "Referenced Attribute" not in self.text


def lines() -> list[Line]:
    found = re.findall(
        r"^\| `([^`]+)`[^|]* \| [^|]+ \| (\w+): `(.+)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    return [Line(yaml.safe_load(f"{{{read}}}"), outcome, text) for read, outcome, text in found]


def only_needed(read: Any, whole: dict[str, Any]) -> dict[str, Any]:
    """The resources of the page that are read, and those that these read."""
    text = yaml.safe_dump(read)
    found = {name: each for name, each in whole.items() if re.search(rf"\b{name}\b", text)}
    needed = {"deployment": ("config",), "cluster": ("profile",)}
    return found | {name: whole[name] for each in found for name in needed.get(each, ())}


def made(service: Service, line: Line, *, in_output: bool) -> str:
    whole = yaml.safe_load(TEMPLATE)
    resources = only_needed(line.read, whole["resources"])
    if in_output:
        whole["outputs"] = {"it": {"value": line.read}}
    else:
        resources["reader"] = {"type": "OS::Heat::Value", "properties": {"type": "json", "value": {"it": line.read}}}
    request = StackRequest({**whole, "resources": resources}, files={"nested.yaml": NESTED}, disable_rollback=True)
    stack_id = service.stack_service.create("p", None, "web", request)
    service.rest()
    return stack_id


def test_every_line_of_the_tables_is_read() -> None:
    assert len(lines()) == len(re.findall(r"^\| `", PAGE.read_text(encoding="utf-8"), re.MULTILINE)) > 60


@pytest.mark.parametrize("line", lines(), ids=lambda line: yaml.safe_dump(line.read, default_flow_style=True).strip())
def test_a_resource_is_not_made_without_what_it_reads(line: Line) -> None:
    service = Service()
    if line.outcome == "refused":
        with pytest.raises(Rejected, match=re.escape(line.text)):
            made(service, line, in_output=False)
        return
    stack_id = made(service, line, in_output=False)
    row = service.row(stack_id, "reader")
    if line.outcome == "gives":
        assert (service.state(stack_id), row.properties["value"]["it"]) == (
            "CREATE_COMPLETE",
            yaml.safe_load(line.text),
        )
    else:
        assert (service.state(stack_id), row.handle, line.text in row.reason) == ("CREATE_FAILED", "", True), row.reason


@pytest.mark.parametrize("line", lines(), ids=lambda line: yaml.safe_dump(line.read, default_flow_style=True).strip())
def test_an_output_reports_what_is_not_there(line: Line) -> None:
    service = Service()
    if line.outcome == "refused" and not line.is_reported_in_outputs:
        with pytest.raises(Rejected, match=re.escape(line.text)):
            made(service, line, in_output=True)
        return
    shown = output(service, made(service, line, in_output=True))
    if line.outcome in ("gives", "misses"):
        value = yaml.safe_load(line.text) if line.outcome == "gives" else None
        assert (shown["output_value"], "output_error" in shown) == (value, False)
    else:
        assert (shown["output_value"], line.text in shown["output_error"]) == (None, True), shown


def test_a_part_that_is_not_there_is_an_error_in_what_is_made_of_it() -> None:
    service = Service()
    nowhere = {"get_attr": ["value", "value", "host"]}
    resources = {"value": {"type": "OS::Heat::Value", "properties": {"type": "json", "value": {"port": 80}}}}
    for number, made in enumerate(([nowhere], {"host": nowhere}, {"list_join": [":", [nowhere, "80"]]})):
        whole = {"heat_template_version": "2021-04-16", "resources": resources, "outputs": {"it": {"value": made}}}
        stack_id = service.stack_service.create("p", None, f"web-{number}", StackRequest(whole))
        service.rest()
        assert "nothing at host" in output(service, stack_id)["output_error"]


def output(service: Service, stack_id: str) -> Mapping[str, Any]:
    with service.db.read() as tx:
        row = service.stack(stack_id)
        (shown,) = outputs.resolved(tx, row, Graphs().described(tx, row))
    return shown


def reading(version: int) -> dict[str, Any]:
    value = {"it": {"get_attr": ["g", "resource.1.first_address"]}, "version": version}
    return {
        "g": group(2, server()),
        "reader": {"type": "OS::Heat::Value", "properties": {"type": "json", "value": value}},
    }


def with_one_away() -> tuple[Service, str]:
    """A stack that reads a member of its group; that is being made anew."""
    service = Service(CloudBehaviour(build_s=30))
    whole = {"heat_template_version": "2018-08-31", "resources": reading(1)}
    whole["outputs"] = {"it": {"value": {"get_attr": ["g", "resource.1.first_address"]}}}
    stack_id = service.stack_service.create("p", None, "web", StackRequest(whole, disable_rollback=True))
    service.rest()
    gone = service.row(service.child().id, "1").handle
    service.cloud.vanish(gone)
    service.clock.time += 1
    service.observer.notice([ChangeNotice("server", gone)])
    service.live(2)
    assert service.states(service.child().id)["1"] == "CREATE_IN_PROGRESS"
    return service, stack_id


def test_who_reads_a_member_that_is_away_waits_for_it() -> None:
    service, stack_id = with_one_away()
    before = service.row(stack_id, "reader").properties
    service.update(stack_id, reading(2) | {"another": reading(2)["reader"]})
    service.live(5)
    assert service.states(stack_id) == {"g": "CREATE_COMPLETE", "reader": "CREATE_COMPLETE"}
    assert (service.state(stack_id), service.row(stack_id, "reader").properties) == ("UPDATE_IN_PROGRESS", before)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    address = service.seen(service.child().id, "1")["address"]
    for name in ("reader", "another"):
        assert service.row(stack_id, name).properties["value"]["it"] == address


def test_an_output_of_a_member_that_is_away_says_so() -> None:
    service, stack_id = with_one_away()
    shown = output(service, stack_id)
    assert (shown["output_value"], shown["output_error"]) == (
        None,
        "resources.g: Member '1' of 'g' is not there for now.",
    )
    service.live(60)
    assert "output_error" not in output(service, stack_id)


def test_outputs_are_null_without_an_error_until_things_are_made() -> None:
    service = Service(CloudBehaviour(build_s=30))
    whole: dict[str, Any] = {"heat_template_version": "2018-08-31", "resources": {"g": group(2, server())}}
    whole["outputs"] = {"it": {"value": {"get_attr": ["g", "resource.1.first_address"]}}}
    stack_id = service.stack_service.create("p", None, "web", StackRequest(whole, disable_rollback=True))
    assert output(service, stack_id) == {**output(service, stack_id), "output_value": None}
    service.live(5)
    shown = output(service, stack_id)
    assert (shown["output_value"], "output_error" in shown) == (None, False)
