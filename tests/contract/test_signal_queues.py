"""Signals in queues of Zaqar, on all databases: each is taken once, whatever is lost, and nothing is left behind."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from sqlalchemy import select
from tests.contract.store_cases import NOW, add_stack, resource

from homeostat.builtin.cloud import Records
from homeostat.builtin.signal_queues import IDLE_S, SignalQueues
from homeostat.clock import Entropy
from homeostat.clouds.identity.queues import Message
from homeostat.clouds.port import Creation
from homeostat.identity.stack_users import StackUsers
from homeostat.model.errors import Terminal, Transient
from homeostat.model.observed import Observation
from homeostat.store import schema
from homeostat.store.builtin import records, stack_users
from homeostat.store.builtin.records import Record
from homeostat.store.builtin.stack_users import DEPARTED_QUEUE, QUEUE
from homeostat.store.database import Database
from homeostat.store.shards import shard_state
from homeostat.store.shards.shard_state import Writes

HANDLE = {"name": "h", "form": "native", "transport": "ZAQAR_SIGNAL"}


class Identity:
    """Users and projects, as `DomainUsers` makes them."""

    domain_id, public_url, region = "domain", "http://keystone:5000/v3", ""

    def __init__(self) -> None:
        self.users: dict[str, str] = {}

    def project(self, name: str, description: str) -> str:
        return f"project-{name}"

    def user(self, name: str, password: str, project_id: str) -> str:
        self.users[f"id-{name}"] = password
        return f"id-{name}"

    def delete(self, one: str, id: str) -> None:
        self.users.pop(id, None)


class Zaqar:
    """Queues, as `UserQueues` reaches them."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._numbers = itertools.count(1)
        self.queues: dict[str, list[Message]] = {}
        self.asked: list[str] = []
        self.lost = 0

    def put(self, queue: str, body: Any) -> None:
        self.queues.setdefault(queue, []).append(Message(f"m{next(self._numbers)}", body))

    def messages(self, login: Mapping[str, str], queue: str) -> list[Message]:
        self._check(login)
        self.asked.append(queue)
        return list(self.queues.get(queue, ()))

    def delete(self, login: Mapping[str, str], queue: str, ids: Sequence[str]) -> None:
        self._check(login)
        if self.lost:
            self.lost -= 1
            raise Transient("the answer is lost")
        self.queues[queue] = [each for each in self.queues[queue] if each.id not in ids]

    def end(self, login: Mapping[str, str], queue: str) -> None:
        self._check(login)
        self.queues.pop(queue, None)

    def _check(self, login: Mapping[str, str]) -> None:
        if self._identity.users.get(login["user_id"]) != login["password"]:
            raise Terminal("no such user")


class Place:
    """A condition that waits for signals of two senders, the queue of its handle, and who collects there."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.time = 0.0
        self.identity = Identity()
        self.zaqar = Zaqar(self.identity)
        self.users = StackUsers(db, self.identity, Entropy(), lambda: self.time)  # type: ignore[arg-type]
        add_stack(db)
        writes = Writes()
        for key in ("handle", "wait", "deploy"):
            writes.insert(resource(key, "p-web", key))
        with db.write() as tx:
            shard_state.record(tx, "p-web", writes, NOW)
        self.own = Records(db, Entropy(), "http://api:8004", self.users).of("p")
        self.handle = _made(self.own.create("signal_handle", [Creation("handle-1", HANDLE)]))
        self.queue = str(self.handle.properties["login"]["queue_id"])
        self.collector = self.another()
        waits = {"name": "w", "handle": self.handle.handle, "timeout": 60, "count": 2}
        self.wait = _made(self.own.create("wait_condition", [Creation("wait-1", waits)]))

    def another(self) -> SignalQueues:
        return SignalQueues(self.db, self.users, self.zaqar, lambda: self.time)  # type: ignore[arg-type]

    def collect(self, *by: SignalQueues) -> int:
        """A second later."""
        self.time += IDLE_S
        with self.db.write() as tx:
            tx.execute(schema.record.update().where(schema.record.c.kind == QUEUE).values(updated_at=0.0))
        return sum(each.tidy() for each in by or (self.collector,))

    def heard(self) -> dict[str, Any]:
        (look,) = self.own.observe("wait_condition", [self.wait.handle])
        return dict(look.properties["heard"])

    def events(self) -> list[str]:
        with self.db.read() as tx:
            return list(tx.execute(select(schema.event.c.reason)).scalars())


def _made(answers: Sequence[Any]) -> Observation:
    (found,) = answers
    assert isinstance(found, Observation), found
    assert found.present
    return found


@pytest.fixture
def place(database: Database) -> Place:
    return Place(database)


def test_a_message_is_a_signal_and_leaves_the_queue(place: Place) -> None:
    login = place.handle.properties["login"]
    assert {"auth_url", "user_id", "password", "project_id", "queue_id"} <= login.keys()
    place.zaqar.put(place.queue, {"id": "a", "data": "here!"})
    assert place.collect() == 1
    assert place.heard()["senders"] == 1
    assert place.zaqar.queues[place.queue] == []


def test_a_message_whose_deletion_is_lost_is_taken_once(place: Place) -> None:
    place.zaqar.put(place.queue, {"data": "without an id, it would count as another sender"})
    place.zaqar.lost = 1
    place.collect()
    assert len(place.zaqar.queues[place.queue]) == 1
    place.collect()
    assert (place.heard()["senders"], place.zaqar.queues[place.queue]) == (1, [])


def test_what_is_no_signal_leaves_an_event_and_goes(place: Place) -> None:
    for body in ({"strange": 1}, {"status": "PERHAPS"}):
        place.zaqar.put(place.queue, body)
    place.collect()
    assert (place.heard()["signals"], place.zaqar.queues[place.queue]) == (0, [])
    refused = [each for each in place.events() if each.startswith("Signal refused: Metadata format invalid")]
    assert len(refused) == 2


def test_a_message_that_is_nested_too_deep_is_refused_alone(place: Place) -> None:
    deep: Any = "x"
    for _ in range(2000):
        deep = [deep]
    place.zaqar.put(place.queue, {"data": deep})
    place.zaqar.put(place.queue, {"data": 1})
    assert place.collect() == 2
    assert place.heard()["signals"] == 1
    assert [each for each in place.events() if each.startswith("Signal refused: ")]


def test_a_body_that_is_no_map_is_a_signal_without_content(place: Place) -> None:
    place.zaqar.put(place.queue, "text")
    place.collect()
    assert place.heard()["signals"] == 1


def test_the_outputs_of_a_deployment_come_by_the_queue_that_its_inputs_name(place: Place) -> None:
    spec = {"name": "d", "config": "", "server_id": "s", "input_values": {}, "actions": ["CREATE"]}
    spec["transport"] = "ZAQAR_SIGNAL"
    made = _made(place.own.create("software_deployment", [Creation("deploy-1", spec)]))
    (config,) = place.own.observe("software_config", [str(made.properties["config_id"])])
    inputs = {each["name"]: each["value"] for each in config.properties["inputs"]}
    assert {"deploy_user_id", "deploy_password", "deploy_project_id", "deploy_auth_url"} <= inputs.keys()
    place.zaqar.put(inputs["deploy_queue_id"], {"deploy_stdout": "hello", "deploy_status_code": 0})
    place.collect()
    (look,) = place.own.observe("software_deployment", [made.handle])
    assert (look.properties["status"], look.properties["output_values"]["deploy_stdout"]) == ("COMPLETE", "hello")


def test_of_several_workers_one_reads(place: Place) -> None:
    assert place.collect(place.collector, place.another()) == 0
    assert place.zaqar.asked == [place.queue]


def test_a_queue_is_read_each_second_while_something_waits_and_seldom_else(place: Place) -> None:
    def next_read_s() -> float:
        with place.db.read() as tx:
            due_at = tx.execute(select(schema.record.c.updated_at).where(schema.record.c.kind == QUEUE)).scalar_one()
            return float(due_at - tx.now())

    with place.db.write() as tx:
        tx.execute(schema.resource.update().where(schema.resource.c.key == "wait").values(status="IN_PROGRESS"))
    place.collect()
    assert next_read_s() <= 1.0
    with place.db.write() as tx:
        tx.execute(schema.resource.update().where(schema.resource.c.key == "wait").values(status="COMPLETE"))
    place.collect()
    assert 30.0 < next_read_s() <= IDLE_S


def test_a_service_that_is_away_is_left_alone_for_a_while(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def away(login: Mapping[str, str], queue: str) -> list[Message]:
        asked.append(queue)
        raise Transient("away")

    monkeypatch.setattr(place.zaqar, "messages", away)
    place.collect()
    with place.db.write() as tx:
        tx.execute(schema.record.update().where(schema.record.c.kind == QUEUE).values(updated_at=0.0))
    place.collector.tidy()
    assert asked == [place.queue]


def test_a_queue_that_cannot_be_read_keeps_no_other_waiting(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = {"name": "d", "config": "", "server_id": "s", "input_values": {}, "actions": ["CREATE"]}
    spec["transport"] = "ZAQAR_SIGNAL"
    place.own.create("software_deployment", [Creation("deploy-1", spec)])
    asked, read = [], place.zaqar.messages

    def messages(login: Mapping[str, str], queue: str) -> list[Message]:
        asked.append(queue)
        if queue != place.queue:
            raise Transient("this one alone")
        return read(login, queue)

    monkeypatch.setattr(place.zaqar, "messages", messages)
    place.zaqar.put(place.queue, {"data": 1})
    assert place.collect() == 1
    assert len(asked) == 2
    assert place.heard()["senders"] == 1
    asked.clear()
    place.zaqar.put(place.queue, {"data": 2})
    assert place.collector.tidy() == 1
    assert asked == [place.queue], "the other one is put off"


def test_the_queues_of_projects_take_turns(place: Place) -> None:
    with place.db.write() as tx:
        for project, number in (("many", 1), ("many", 2), ("many", 3), ("one", 4)):
            records.add(
                tx,
                [
                    Record(f"r{number}", "signal_handle", project, f"r-{number}", HANDLE),
                    Record(f"q{number}", QUEUE, "users", f"q-{number}", {}, f"r{number}", updated_at=float(number)),
                ],
            )
    with place.db.read() as tx:
        due = [each.id for each in stack_users.due_queues(tx, 10.0, 4)]
    assert due[0] == place.queue, "at once comes first"
    assert due[1:] == ["q1", "q4", "q2"]


def test_the_queue_goes_with_its_handle_and_before_its_user(place: Place) -> None:
    place.zaqar.put(place.queue, {"data": 1})
    place.own.delete("wait_condition", [place.wait.handle])
    place.own.delete("signal_handle", [place.handle.handle])
    place.users.tidy()
    assert place.identity.users, "the user is there as long as the queue"
    assert place.collect() == 1
    assert place.zaqar.queues == {}
    place.users.tidy()
    assert place.identity.users == {}
    with place.db.read() as tx:
        kinds = select(schema.record.c.id).where(schema.record.c.kind.in_((QUEUE, DEPARTED_QUEUE)))
        assert tx.execute(kinds).all() == []
