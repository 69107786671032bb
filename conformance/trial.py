"""Trying one template: whether it is accepted, and what becomes of its stack on a simulated cloud in virtual time."""

import json
import re
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tests.component.running import PROJECT, Service

from conformance.agents import answer
from conformance.corpus import Case
from conformance.values import made_up
from homeostat.api.orchestration import outputs
from homeostat.clouds.port import Creation as Thing
from homeostat.clouds.simulated import CloudBehaviour, Faults, SimulatedCloud
from homeostat.model.desired import Identity
from homeostat.model.errors import FAULT_CODES, Rejected
from homeostat.model.observed import Observation
from homeostat.model.status import Status
from homeostat.planner.report.preview import Fate
from homeostat.resources.registry import kind_of
from homeostat.services.graphs import Graphs
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.preview import Preview, all_of
from homeostat.store.stacks import stacks

CORE = ("OS::Nova::", "OS::Neutron::", "OS::Cinder::", "OS::Octavia::", "OS::Heat::")
"""Types that are deployed wherever a template has no others."""
WITHIN_S = 4 * 3600.0
"""Virtual seconds that an operation may take."""
BUILD_S = 7.0
"""Virtual seconds in which the cloud makes a thing, or takes it away."""
IDENTITY = Identity("00000000-0000-0000-0000-000000000000", "tried", PROJECT)
_LOCATED = re.compile(r"line \d+|section is invalid: \S+|[Pp]arameter '?\(?\w+|version|key \w+|\(in \S+\)| -> ")
"""Places that are not paths: a line, or the name of a section, of a parameter, of a key, of a circle."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a template.

    reached — the last stage that it passed: nothing, `validate`, `plan` (what it shows is what is made then),
    `create`, `complete`, `answered` (its outputs have values), `settled` (the same again does nothing) or `deleted`;
    fault — type of what stopped it, as on the wire for a mistake of the caller, "" for nothing; message — as users see
    it; place — where it points, "" for nowhere; types — all, those of nested templates too.
    """

    path: str
    repository: str
    part: bool
    reached: str
    fault: str = ""
    message: str = ""
    place: str = ""
    types: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return self.reached == "deleted"

    @property
    def refused(self) -> bool:
        """Was it answered that the caller made a mistake?"""
        return self.fault in FAULT_CODES

    @property
    def located(self) -> bool:
        """Does the answer say where the mistake is?"""
        return bool(self.place) or _LOCATED.search(self.message) is not None

    @property
    def core(self) -> bool:
        return all(each.startswith(CORE) for each in self.types)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "core": self.core, "passed": self.passed}


class Stopped(Exception):
    """A stack is not where it should be. detail — what is."""


def trial(case: Case, faults: int | None = None) -> Outcome:
    """Validate, create, update and delete a stack of this template.

    faults — seed of a cloud that loses answers, refuses, lists late and often does not answer; None for a good one.
    """
    reached, fault, message, place = "", "", "", ""
    try:
        for stage in _stages(case, _service(faults)):
            reached = stage
    except Rejected as error:
        fault, message, place = error.fault, str(error), ".".join(map(str, error.path))
    except Stopped as error:
        fault, message = "Stopped", str(error)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the result of this template and shown as such
        last = traceback.extract_tb(error.__traceback__)[-1]
        fault = type(error).__name__
        message = f"{error} ({last.filename.rpartition('/')[2]}:{last.lineno})"
    return Outcome(case.path, case.repository, case.part, reached, fault, message, place, tuple(sorted(types_of(case))))


def _service(faults: int | None) -> Service:
    if faults is None:
        return Service(CloudBehaviour(build_s=BUILD_S, delete_s=BUILD_S))
    bad = Faults(unreachable=0.08, refused=0.08, lost=0.08)
    behaviour = CloudBehaviour(BUILD_S, BUILD_S, listing_lag_s=2.0, idempotent=False, faults=bad)
    return Service(cloud=lambda clock: SimulatedCloud(clock.now, behaviour, seed=faults))


def _stages(case: Case, service: Service) -> Iterator[str]:
    intent = StackRequest(case.template, environment=case.environment, files=case.files, disable_rollback=True)
    service.stack_service.validate(IDENTITY, intent)
    yield "validate"
    template = _with_externals(service, case.template)
    given = StackRequest(template, made_up(case), case.environment, case.files, disable_rollback=True)
    previewed = _names(service.stack_service.preview_new(PROJECT, "tried", given), Fate.ADDED)
    yield "plan"
    stack_id = service.stack_service.create(PROJECT, None, "tried", given)
    yield "create"
    _rest(service, stack_id, "CREATE_COMPLETE")
    made = {row.name for row in service.rows(stack_id)}
    if made != previewed:
        raise Stopped(f"the preview showed {sorted(previewed)}, created were {sorted(made)}")
    yield "complete"
    failed = [each for each in _outputs(service, stack_id) if "output_error" in each]
    if failed:
        raise Stopped(f"outputs without a value: {failed}")
    yield "answered"
    preview = service.stack_service.preview_update(stack_id, given)
    if _names(preview, Fate.UNCHANGED) != made:
        raise Stopped(f"the preview of the same shows changes of {sorted(made - _names(preview, Fate.UNCHANGED))}")
    before = _state(service)
    service.stack_service.update(stack_id, given)
    _rest(service, stack_id, "UPDATE_COMPLETE")
    if _state(service) != before:
        raise Stopped(f"the same again changed something: {_difference(before, _state(service))}")
    yield "settled"
    kept = {row.handle for row in _rows_to_keep(service, case, stack_id)}
    service.stack_service.delete(stack_id)
    _rest(service, stack_id, "DELETE_COMPLETE")
    left = service.cloud.things().keys() - kept
    if left:
        raise Stopped(f"left in the cloud: {', '.join(sorted(left))}")
    if service.cloud.doubled:
        raise Stopped(f"made twice: {service.cloud.doubled}")
    yield "deleted"


def _with_externals(service: Service, template: Mapping[str, Any] | str) -> Mapping[str, Any] | str:
    """The template, where what it takes from another owner (`external_id`) is there."""
    resources = template.get("resources") if isinstance(template, Mapping) else None
    if not isinstance(template, Mapping) or not isinstance(resources, Mapping):
        return template
    behaviour = service.cloud.behaviour
    behaviour.faults, faults = Faults(), behaviour.faults
    found = {}
    for name, each in resources.items():
        found[name] = each
        if "external_id" in each:
            (made,) = service.cloud.create(kind_of(each["type"]), [Thing(f"theirs-{name}", {"name": name})])
            assert isinstance(made, Observation), made
            found[name] = {**each, "external_id": made.handle}
    behaviour.faults = faults
    service.clock.time += behaviour.listing_lag_s
    return {**template, "resources": found}


def _names(preview: Preview, fate: Fate) -> set[str]:
    """Resources of the stack itself for which the preview shows this."""
    return {note.name for each, note in all_of(preview, [fate]) if not each.path}


def _rest(service: Service, stack_id: str, wanted: str) -> None:
    """Let time pass, with agents at work, until all is at rest. Fails: Stopped when it is not where it should be."""
    end = service.clock.time + WITHIN_S
    service.work()
    while any(each.status == Status.IN_PROGRESS for each in service.stacks()):
        if service.clock.time >= end:
            raise Stopped(f"{wanted} is not reached: {_unfinished(service)}")
        service.live(1.0)
        answer(service)
    if service.stack(stack_id) is not None and service.state(stack_id) != wanted:
        row = service.stack(stack_id)
        raise Stopped(f"{service.state(stack_id)} instead of {wanted}: {row.reason}")


def _outputs(service: Service, stack_id: str) -> Sequence[Mapping[str, Any]]:
    """Outputs as the API gives them."""
    with service.db.read() as tx:
        row = stacks.get(tx, stack_id)
        assert row is not None
        return outputs.resolved(tx, row, Graphs().described(tx, row))


def _unfinished(service: Service) -> str:
    rows = [row for each in service.stacks() for row in service.rows(each.id) if row.status != "COMPLETE"]
    return ", ".join(f"{row.name} ({row.type}) {row.action}_{row.status} {row.reason}" for row in rows[:5])


def _state(service: Service) -> dict[str, Any]:
    """What an update that changes nothing leaves alone: resources with their things, and the cloud."""
    rows = [row for each in service.stacks() for row in service.rows(each.id)]
    return {
        **{f"{row.stack_id}/{row.name}/{row.key}": (row.handle, row.action, row.status) for row in rows},
        **service.cloud.things(),
    }


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    names = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
    return "; ".join(f"{name}: {before.get(name)} → {after.get(name)}" for name in sorted(names)[:3])


def _rows_to_keep(service: Service, case: Case, stack_id: str) -> list[Any]:
    """Rows of the resources that the template wants to keep after the stack, or that are not its own."""
    template = case.template if isinstance(case.template, dict) else {}
    resources = template.get("resources", template.get("Resources")) or {}
    kept = {
        name
        for name, each in resources.items()
        if str(each.get("deletion_policy", each.get("DeletionPolicy", ""))).lower() in ("retain", "snapshot")
        or "external_id" in each
    }
    return [row for row in service.rows(stack_id) if row.name in kept]


def types_of(case: Case) -> set[str]:
    """Types of all resources that the template describes, groups and nested templates included."""
    found: set[str] = set()
    documents = [case.template, *(_document(text) for text in case.files.values())]
    for document in documents:
        if isinstance(document, dict):
            pending = [document.get("resources"), document.get("Resources")]
            while pending:
                each = pending.pop()
                if isinstance(each, dict):
                    names = [each.get("type"), each.get("Type")]
                    found |= {name for name in names if isinstance(name, str) and "::" in name}
                    pending += each.values()
                elif isinstance(each, list):
                    pending += each
    return found


def _document(text: str) -> Any:
    """Nested templates are JSON once their names are clear; other files are no templates."""
    try:
        return json.loads(text)
    except ValueError:
        return None
