"""The life of a thing of any kind, through the cloud port, on a real service."""

import contextlib
import os
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from homeostat.clouds.openstack import OpenStack as Adapter
from homeostat.clouds.openstack import OpenStackConfig
from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.openstack.connections import Connections
from homeostat.clouds.openstack.tokens import Joined
from homeostat.clouds.port import Answer, Change, Creation, Operation
from homeostat.model.errors import Terminal, Transient, Uncertain
from homeostat.model.observed import Condition, Observation, Presence, Verdict
from homeostat.resources.base import Thing
from homeostat.resources.kind_fields import fields_of
from homeostat.resources.registry import type_of
from tests.openstack.projects import Project, auth_of_admin
from tests.openstack.running import OpenStack
from tests.waiting import until

NEVER = "11111111-2222-4333-8444-555555555555"
"""Id of nothing."""


@contextlib.contextmanager
def adapter(project: Project, directory: Path, *, admin: bool = False) -> Iterator[OpenStackCloud]:
    """The cloud as a user of the project sees it, or the administrator in the project."""
    auth = auth_of_admin(project) if admin else project.auth
    file = directory / f"{'admin' if admin else 'user'}.yaml"
    file.write_text(yaml.safe_dump({"clouds": {"test": {"auth": auth, "region_name": "RegionOne"}}}))
    before = os.environ.get("OS_CLIENT_CONFIG_FILE")
    os.environ["OS_CLIENT_CONFIG_FILE"] = str(file)
    config = OpenStackConfig(cloud="test")
    connections = Connections(config)
    connections.of("")
    if before is None:
        del os.environ["OS_CLIENT_CONFIG_FILE"]
    else:
        os.environ["OS_CLIENT_CONFIG_FILE"] = before
    cloud = Adapter(config, connections)
    yield cloud.of(project.id)
    cloud.close()


@dataclass(frozen=True)
class Life:
    """One row of the table.

    Attributes:
        type: Name of the resource type.
        values: Properties.
        changes: Properties that are changed in place, one step after the other.
        wrong: Properties that the service refuses.
        lost: Service, method and path of the request whose answer is lost; () where none is tried.
        always: Whether it exists for ever, like a quota.
    """

    type: str
    values: Mapping[str, Any]
    changes: tuple[Mapping[str, Any], ...] = ()
    wrong: Mapping[str, Any] = field(default_factory=dict)
    lost: tuple[str, ...] = ()
    always: bool = False


@dataclass
class Liver:
    """One thing that lives a life."""

    cloud: OpenStackCloud
    life: Life
    values: dict[str, Any] = field(init=False)
    token: str = field(default_factory=lambda: f"{uuid.uuid4().hex[:12]}-1")
    handle: str = ""

    def __post_init__(self) -> None:
        self.type = type_of(self.life.type)
        self.kind = self.type.kind
        self.values = dict(self.life.values)

    def spec(self, **more: Any) -> dict[str, Any]:
        return self.type.spec(self.type.complete({**self.values, **more}), f"n-{self.token}")

    def create(self) -> Observation:
        """Create it, beside one that is refused, and wait until it is ready and as it was meant."""
        wrong = [Creation(f"{self.token}x", self.spec(**self.life.wrong))] if self.life.wrong else []
        made, *refused = self.patiently(
            lambda: self.cloud.create(self.kind, [Creation(self.token, self.spec()), *wrong])
        )
        assert all(isinstance(each, Terminal) for each in refused), refused
        self.handle = present(made).handle
        return self.settled()

    def patiently(self, ask: Any) -> list[Answer]:
        """Ask again while it is not the time."""
        last: list[Answer] = []

        def ask_once() -> bool:
            last[:] = ask()
            return not isinstance(last[0], (Transient, Uncertain))

        until(ask_once, f"{self.kind} not to be transient", rest=lambda _: time.sleep(0.5))
        return last

    def verdict(self, seen: Observation) -> Verdict:
        values = self.type.complete(self.values)
        thing = Thing("k", "r", f"n-{self.token}", values, seen, handle=self.handle)
        return self.type.judge(thing, time.time())

    def look(self) -> Observation:
        return self.cloud.observe(self.kind, [self.handle])[0]

    def settled(self) -> Observation:
        """Wait until it is ready; what differs is repaired once, as after each creation."""
        repaired: list[Verdict] = []

        def look() -> Observation | None:
            seen = self.look()
            verdict = self.verdict(seen)
            assert verdict.condition is not Condition.BROKEN, verdict
            if verdict.condition is Condition.DRIFTED and not repaired:
                repaired.append(verdict)
                self.update(verdict.drifted)
                return None
            assert verdict.condition is not Condition.DRIFTED, (verdict, seen)
            return seen if verdict.condition is Condition.READY else None

        return until(look, f"{self.kind} {self.handle} to be ready", rest=lambda _: time.sleep(0.3))

    def fields(self, seen: Observation) -> dict[str, Any]:
        """What the kind says that there is."""
        return {name: value for name, value in seen.properties.items() if name in fields_of(self.kind).all}

    def update(self, changed: Any) -> None:
        fields = tuple(self.type.renamed.get(name, name) for name in changed)
        change = Change(self.handle, self.spec(), fields)
        present(self.patiently(lambda: self.cloud.update(self.kind, [change]))[0])

    def gone(self) -> None:
        """Delete it, and wait until it is gone."""
        answer = self.patiently(lambda: self.cloud.delete(self.kind, [self.handle]))[0]
        assert isinstance(answer, Observation), answer
        assert answer.presence is Presence.ABSENT or answer.properties["status"] == "deleting"

        def look() -> bool:
            return self.look().presence is Presence.ABSENT

        if answer.present:
            until(look, f"{self.kind} {self.handle} to be gone", rest=lambda _: time.sleep(0.3))

    @property
    def has_token(self) -> bool:
        return not isinstance(self.cloud.collections[self.kind].token, Joined)


def live(cloud: OpenStackCloud, openstack: OpenStack, life: Life) -> None:
    """Let a thing live from its creation until nothing is left of it."""
    one = Liver(cloud, life)
    seen = one.create()
    if one.has_token:
        assert [each.handle for each in cloud.find(one.kind, [one.token, "never-1"])] == [one.handle, ""]
    nothing = [f"{NEVER[:-1]}{n}" for n in range(4)]
    for change in life.changes:
        one.values.update(change)
        one.update(change)
        seen = one.settled()
    if not life.always:
        many = cloud.observe(one.kind, [one.handle, *nothing])
        assert [each.presence for each in many] == [Presence.PRESENT, *[Presence.ABSENT] * 4]
        assert one.fields(many[0]) == one.fields(seen)
        _nothing_is_absent(one)
    if one.has_token:
        assert one.token in cloud.collections[one.kind].token.read(_raw(one))
        own = {name: value for name, value in seen.properties.items() if name != "token"}
        assert one.token not in str(own)
    one.gone()
    if not life.always:
        (again,) = cloud.delete(one.kind, [one.handle])
        assert isinstance(again, Observation)
        assert (again.presence, again.not_found) == (Presence.ABSENT, True)
    assert cloud.find(one.kind, [one.token])[0].presence is Presence.ABSENT
    if life.lost:
        _lose_answer(cloud, openstack, life)


def _raw(one: Liver) -> dict[str, Any]:
    return one.cloud.collections[one.kind].find([one.token])[one.token]


def _nothing_is_absent(one: Liver) -> None:
    cloud, kind = one.cloud, one.kind
    change = Change(NEVER, one.spec(), tuple(one.values))
    for answer in (*cloud.update(kind, [change]), *cloud.operate(kind, [Operation(NEVER, "snapshot", {"token": "t"})])):
        assert isinstance(answer, Observation), answer
        assert answer.presence is Presence.ABSENT
    (answer,) = cloud.delete(kind, [NEVER])
    assert isinstance(answer, Observation)
    assert answer.not_found


def _lose_answer(cloud: OpenStackCloud, openstack: OpenStack, life: Life) -> None:
    """Lose the answer to a creation: what it made is found by its token, and is one thing."""
    one = Liver(cloud, life)
    service, method, path = life.lost
    with openstack.fault("http", service=service, method=method, path=path, status=502, after=True, times=1):
        (answer,) = cloud.create(one.kind, [Creation(one.token, one.spec())])
    assert isinstance(answer, Uncertain), answer
    if one.has_token:
        one.handle = present(cloud.find(one.kind, [one.token])[0]).handle
    else:
        one.handle = present(cloud.create(one.kind, [Creation(one.token, one.spec())])[0]).handle
    collection = cloud.collections[one.kind]
    things = collection.list() if one.has_token else ()
    assert len([each for each in things if collection.token.read(each) == one.token]) == one.has_token
    one.settled()
    one.gone()


def present(answer: Answer) -> Observation:
    assert isinstance(answer, Observation), answer
    assert answer.present, answer
    return answer
