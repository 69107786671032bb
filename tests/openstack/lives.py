"""The life of one thing of a real OpenStack through the port, by the properties of its resource type."""

import contextlib
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from homeostat.clouds.openstack import OpenStack as Adapter
from homeostat.clouds.openstack import OpenStackConfig
from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.openstack.connections import Connections
from homeostat.clouds.port import Answer, Change, Cloud, Creation
from homeostat.kinds.registry import KINDS
from homeostat.model.errors import Transient, Uncertain
from homeostat.model.observed import Observation, Presence
from homeostat.resources.base import ResourceType, Thing
from homeostat.resources.registry import type_of
from tests.openstack.projects import Project
from tests.waiting import until

Spec = dict[str, Any]
SETTLES_S = 600.0
"""Some services lose a change under load, and find that out minutes later."""
LOOK_S = 0.5
"""Between two looks: a real service is not asked more often."""


@dataclass(frozen=True, slots=True)
class Life:
    """What a thing goes through.

    properties — of its type, as in a template. changes — one set of properties after the other, each an update in
    place. handle — of a thing that never was. refused — properties that the service refuses.
    """

    type: str
    properties: Spec
    changes: tuple[Spec, ...] = ()
    handle: str = field(default_factory=lambda: str(uuid.uuid4()))
    refused: Spec | None = None
    ends: bool = True

    @property
    def of(self) -> ResourceType:
        return type_of(self.type)

    def spec(self, name: str, changed: Mapping[str, Any] | None = None) -> Spec:
        return self.of.spec(self.values(changed), name)

    def values(self, changed: Mapping[str, Any] | None = None) -> Spec:
        return self.of.complete(self.of.check({**self.properties, **(changed or {})}))

    def differing(self, seen: Observation, name: str, changed: Mapping[str, Any] | None = None) -> tuple[str, ...]:
        """Names of the properties whose values the service reports otherwise, by the type's own comparison."""
        values = self.values(changed)
        thing = Thing("k", "thing", name, values, seen)
        wanted, found = self.spec(name, changed), seen.properties
        fixed = (
            each
            for each, prop in self.of.properties.items()
            if not prop.update
            and prop.drift
            and (known := self.of.renamed.get(each, each)) in found
            and wanted.get(known)
            and not prop.same(wanted[known], found[known])
        )
        return (*self.of.drift(thing), *fixed)


@contextlib.contextmanager
def adapter(project: Project, directory: Path, user: str = "") -> Iterator[OpenStackCloud]:
    """The cloud as the project's user sees it, or as another one with the same password."""
    auth = {**project.auth, **({"username": user, "password": "minios"} if user else {})}
    names = {f"OS_{name.upper()}": value for name, value in auth.items()}
    with pytest.MonkeyPatch.context() as patch:
        for name in [each for each in os.environ if each.startswith("OS_")]:
            patch.delenv(name)
        for name, value in {**names, "OS_REGION_NAME": "RegionOne", "OS_IDENTITY_API_VERSION": "3"}.items():
            patch.setenv(name, value)
        patch.chdir(directory)
        connections = Connections(OpenStackConfig())
        connections.of(project.id)
    cloud = Adapter(OpenStackConfig(), connections)
    try:
        yield cloud.of(project.id)
    finally:
        cloud.close()


def accepted(act: Callable[[], list[Answer]]) -> Observation:
    """The answer of a batch of one, once the service takes it."""

    def ask() -> Answer | None:
        answer = act()[0]
        return None if isinstance(answer, Transient) else answer

    found = until(ask, "the service to take a request", rest=rest)
    assert isinstance(found, Observation), found
    return found


def rest(_: float) -> None:
    time.sleep(LOOK_S)


def ready(cloud: Cloud, kind: str, handle: str) -> Observation:
    """What it looks like when it has settled well."""
    words = KINDS[kind].statuses

    def ask() -> Observation | None:
        seen = cloud.observe(kind, [handle])[0]
        status = seen.properties.get("status")
        assert seen.present, seen.reason
        assert status not in words.broken, seen.properties
        return seen if status is None or status in words.ready else None

    return until(ask, f"{kind} {handle}", rest=rest, within_s=SETTLES_S)


def make(cloud: Cloud, type: str, properties: Spec, name: str = "") -> str:
    """The handle of a new thing that is ready."""
    life = Life(type, properties)
    token, kind = f"test-{uuid.uuid4()}", life.of.kind
    made = accepted(lambda: cloud.create(kind, [Creation(token, life.spec(name or token[:30]))]))
    return ready(cloud, kind, made.handle).handle


def remove(cloud: Cloud, kind: str, handle: str) -> None:
    """Returns when it is gone."""
    accepted(lambda: cloud.delete(kind, [handle]))
    until(lambda: not cloud.observe(kind, [handle])[0].present, f"{kind} {handle} to go", rest=rest)


def check_never(cloud: OpenStackCloud, kind: str, handle: str) -> None:
    """What never was is absent to every verb."""
    looks: list[Answer] = [*cloud.observe(kind, [handle]), *cloud.find(kind, ["never-was"])]
    looks += cloud.update(kind, [Change(handle, {"name": handle, "description": "x"}, ("name", "description"))])
    assert [each.presence for each in looks if isinstance(each, Observation)] == [Presence.ABSENT] * 3
    gone = cloud.delete(kind, [handle])[0]
    assert isinstance(gone, Observation)
    assert not gone.present
    assert gone.not_found


def check_life(cloud: OpenStackCloud, life: Life) -> None:
    """Made with a token, changed field by field, and deleted; each look agrees with what was asked for."""
    kind, token, name = life.of.kind, f"life-{uuid.uuid4()}", f"life-{uuid.uuid4().hex[:8]}"
    made = accepted(lambda: cloud.create(kind, [Creation(token, life.spec(name))]))
    seen = ready(cloud, kind, made.handle)
    assert seen.handle == made.handle
    assert [each.handle for each in cloud.find(kind, [token, "never-was"])] == [made.handle, ""]
    assert life.differing(seen, name) == ()
    before: Spec = {}
    for step in life.changes:
        after = {**before, **step}
        _update(cloud, life, made.handle, name, before, after)
        before = after
    assert [each.handle for each in cloud.find(kind, [token])] == [made.handle], "an update has lost the token"
    remove(cloud, kind, made.handle)
    again = accepted(lambda: cloud.delete(kind, [made.handle]))
    assert not again.present
    assert again.not_found
    assert not cloud.find(kind, [token])[0].present


def _update(cloud: OpenStackCloud, life: Life, handle: str, name: str, before: Spec, after: Spec) -> None:
    old, new = life.spec(name, before), life.spec(name, after)
    changed = tuple(sorted(each for each in {*old, *new} if old.get(each) != new.get(each)))
    assert changed, f"{after} changes nothing"
    accepted(lambda: cloud.update(life.of.kind, [Change(handle, new, changed)]))
    seen = ready(cloud, life.of.kind, handle)
    assert life.differing(seen, name, after) == ()


def check_lost(
    cloud: OpenStackCloud, project: Project, life: Life, service: str, path: str, method: str = "POST"
) -> None:
    """A creation whose answer is lost has made one thing, which its token finds."""
    kind, token = life.of.kind, f"lost-{uuid.uuid4()}"
    creation = Creation(token, life.spec(f"lost-{token[-8:]}"))
    fault = project.cloud.fault("http", service=service, method=method, path=path, status=502, after=True, times=1)
    with fault:

        def lost() -> Answer | None:
            answer = cloud.create(kind, [creation])[0]
            return None if isinstance(answer, Transient) else answer

        assert isinstance(until(lost, "an answer to be lost", rest=rest), Uncertain)
    found = cloud.find(kind, [token])[0]
    assert found.present
    remove(cloud, kind, ready(cloud, kind, found.handle).handle)
    assert not cloud.find(kind, [token])[0].present
