"""The ring with signals in queues of Zaqar: it does not answer, loses answers and queues, shows what was deleted, and
workers die between a message and its signal. Each message counts once, and none is lost (ADR 0101)."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from homeostat.builtin.signal_queues import SignalQueues
from homeostat.clouds.identity.queues import Message
from homeostat.identity.stack_users import StackUsers
from homeostat.model.errors import Terminal, Transient
from homeostat.model.status import Status
from homeostat.store.builtin import records
from homeostat.store.builtin.stack_users import (
    DEPARTED_PROJECT,
    DEPARTED_QUEUE,
    DEPARTED_USER,
    QUEUE,
    STACK_USER,
    USER_PROJECT,
)
from homeostat.store.database import Database
from tests.simulation.actors import Worker, pause
from tests.simulation.parts import Part
from tests.simulation.playing import Ring, seeds_to_play
from tests.simulation.templates import Resources
from tests.simulation.test_signals import DEPLOYMENT, HANDLE, Configurer
from tests.simulation.trouble import troubled
from tests.simulation.users import Users
from tests.simulation.world import PATIENCE_S

pytestmark = pytest.mark.heavy

DEPARTED = (DEPARTED_QUEUE, DEPARTED_USER, DEPARTED_PROJECT)
DUE = f"""SELECT min(at) FROM (SELECT coalesce(updated_at, 0.0) AS at FROM record WHERE kind = '{QUEUE}'
    UNION ALL SELECT 0.0 FROM record WHERE kind = '{DEPARTED_QUEUE}'
    UNION ALL SELECT CASE link WHEN '' THEN created_at + {PATIENCE_S} ELSE 0.0 END
        FROM record WHERE kind = '{DEPARTED_USER}'
    UNION ALL SELECT 0.0 FROM record AS departed WHERE kind = '{DEPARTED_PROJECT}' AND NOT EXISTS (
        SELECT 1 FROM record WHERE project = departed.project AND kind IN ('{STACK_USER}', '{DEPARTED_USER}')))"""
"""When a worker has work for queues. A project waits for its users, and a user of unknown id for its creation."""


class QueueConfigurer(Configurer):
    """Whatever signals does so in a queue."""

    def _properties(self, kind: str, earlier: Resources) -> dict[str, Any]:
        properties = super()._properties(kind, earlier)
        return properties | ({"signal_transport": "ZAQAR_SIGNAL"} if kind in (HANDLE, DEPLOYMENT) else {})


class Identity:
    """Users and projects, as `DomainUsers` makes them. A worker may die before a request and after it."""

    domain_id, public_url, region = "domain", "http://keystone:5000/v3", ""

    def __init__(self) -> None:
        self.users: dict[str, str] = {}
        self.projects: set[str] = set()

    def project(self, name: str, description: str) -> str:
        pause()
        self.projects.add(f"project-{name}")
        pause()
        return f"project-{name}"

    def user(self, name: str, password: str, project_id: str) -> str:
        pause()
        self.users[f"id-{name}"] = password
        pause()
        return f"id-{name}"

    def find(self, one: str, name: str) -> str | None:
        pause()
        found = f"id-{name}" if one == "user" else f"project-{name}"
        return found if found in self.users or found in self.projects else None

    def delete(self, one: str, id: str) -> None:
        pause()
        self.users.pop(id, None)
        self.projects.discard(id)
        pause()


class Zaqar:
    """Queues, as `UserQueues` reaches them. is_down — it answers nobody; forgets — it loses the next answers; late — it
    goes on to show what was deleted; gone — bodies of messages that went with their queue."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self.queues: dict[str, list[Message]] = {}
        self._deleted: dict[str, list[Message]] = {}
        self.is_down = self.late = False
        self.forgets = 0
        self.gone: set[str] = set()

    def messages(self, login: Mapping[str, str], queue: str) -> list[Message]:
        self._ask(login)
        found = [*(self._deleted.get(queue, ()) if self.late else ()), *self.queues.get(queue, ())]
        self._answer()
        return found

    def delete(self, login: Mapping[str, str], queue: str, ids: Sequence[str]) -> None:
        self._ask(login)
        there = self.queues.get(queue, [])
        self._deleted[queue] = [each for each in there if each.id in ids]
        self.queues[queue] = [each for each in there if each.id not in ids]
        self._answer()

    def end(self, login: Mapping[str, str], queue: str) -> None:
        self._ask(login)
        self.lose(queue)
        self._answer()

    def lose(self, queue: str) -> None:
        self.gone |= {each.body["data"] for each in self.queues.pop(queue, ())}

    def _ask(self, login: Mapping[str, str]) -> None:
        pause()
        if self.is_down:
            raise Transient("Zaqar does not answer")
        if self._identity.users.get(login["user_id"]) != login["password"]:
            raise Terminal("no such user")

    def _answer(self) -> None:
        pause()
        if self.forgets:
            self.forgets -= 1
            raise Transient("the answer is lost")


class Queues(Part):
    """Servers that signal in queues, what waits for that, and the troubles of Zaqar."""

    def __init__(self) -> None:
        self._identity = Identity()
        self._zaqar = Zaqar(self._identity)
        self._numbers = itertools.count(1)
        self._posted: dict[str, set[str]] = {}
        self._heard: dict[str, set[str]] = {}
        self._removed: set[str] = set()
        self._collectors: dict[str, tuple[StackUsers, SignalQueues]] = {}

    def begin(self) -> None:
        self.world.part(Users).gardener = QueueConfigurer(self.rng, nested=self.rng.random() < 0.3)
        faults = ((1.0, self._go_down), (1.0, self._forget), (1.0, self._show_late), (0.5, self._lose_queue))
        self.world.acts += [(12.0, self._post), *faults]

    # -- workers -----------------------------------------------------------------------------------------------------

    def stack_users(self, db: Database) -> StackUsers:
        return StackUsers(db, self._identity, self.world.entropy, self.clock.monotonic)  # type: ignore[arg-type]

    def hired(self, worker: Worker) -> None:
        users = self.stack_users(worker.db)
        queues = SignalQueues(worker.db, users, self._zaqar, self.clock.monotonic)  # type: ignore[arg-type]
        self._collectors[worker.name] = users, queues

    def looked(self, worker: Worker) -> None:
        users, queues = self._collectors[worker.name]
        try:
            self.world.happened["collected"] += queues.tidy()
            users.tidy()
        except Transient:
            return

    def next_due(self) -> float | None:
        (due,) = self.db.raw.execute(DUE).fetchone()
        return None if due is None else float(due)

    # -- servers -----------------------------------------------------------------------------------------------------

    def _queues(self) -> list[Any]:
        """Of resources that are there."""
        found = self.world.records()
        ids = {each.id for each in found}
        return sorted((each for each in found if each.kind == QUEUE and each.link in ids), key=lambda each: each.id)

    def _post(self) -> None:
        """A server posts a message, perhaps of a failure."""
        queues = self._queues()
        if queues:
            status = self.rng.choice((*["SUCCESS"] * 6, "FAILURE"))
            self._put(self.rng.choice(queues), status)

    def _put(self, queue: Any, status: str) -> None:
        number = f"m{next(self._numbers)}"
        # Without an id, so that one that is taken twice counts as two.
        self._zaqar.queues.setdefault(queue.id, []).append(Message(number, {"data": number, "status": status}))
        self._posted.setdefault(queue.id, set()).add(number)
        self.world.happened["posted"] += 1
        self.note(f"post {number} {status} to {queue.id}")

    def last_word(self) -> None:
        """After the calm every server tells what it has to: nobody waits for ever."""
        busy = {row.handle for row in self.world.rows() if row.status == Status.IN_PROGRESS and row.handle}
        waited_for = {each.link for each in self.world.records() if each.id in busy} | busy
        for queue in self._queues():
            if queue.link in waited_for and not self._zaqar.queues.get(queue.id):
                self._put(queue, "SUCCESS")

    # -- Zaqar -------------------------------------------------------------------------------------------------------

    def _go_down(self) -> None:
        self._zaqar.is_down = True
        self.world.until((5.0, 30.0, 120.0), self._come_back, "Zaqar is down")

    def _come_back(self) -> None:
        self._zaqar.is_down = False

    def _forget(self) -> None:
        self._zaqar.forgets = self.rng.choice((1, 2, 5))
        self.note(f"Zaqar loses {self._zaqar.forgets} answers")

    def _show_late(self) -> None:
        self._zaqar.late = True
        self.world.until((5.0, 30.0, 120.0), self._catch_up, "Zaqar shows what was deleted")

    def _catch_up(self) -> None:
        self._zaqar.late = False

    def _lose_queue(self) -> None:
        queue = self.rng.choice(sorted(self._zaqar.queues) or [""])
        self._zaqar.lose(queue)
        self.note(f"the queue {queue} is deleted")

    # -- invariants --------------------------------------------------------------------------------------------------

    def calm(self) -> None:
        self._zaqar.forgets = 0

    def is_moving(self) -> bool:
        """Does a queue have messages that nobody has taken, or is anything departed still to be deleted?"""
        departed = any(each.kind in DEPARTED for each in self.world.records())
        return departed or any(self._zaqar.queues.get(each.id) for each in self._queues())

    def committed(self) -> None:
        """The signals of a handle go with the last condition that uses it."""
        rows = self.db.raw.execute("SELECT record_id, json_extract(object, '$.data') FROM signal").fetchall()
        heard: dict[str, set[str]] = {}
        for handle, data in rows:
            heard.setdefault(handle, set()).add(data)
        self._removed |= {data for handle, known in self._heard.items() for data in known - heard.get(handle, set())}
        self._heard = heard

    def rested(self) -> None:
        """Each message is one signal, unless its queue was lost; each user belongs to a resource."""
        handles = {each.link: each.id for each in self._queues()}
        with self.db.read() as tx:
            signals = records.signals_of(tx, handles)
            kinds = {each.id: each.kind for each in self.world.records()}
        for handle in (each for each in handles if kinds[each] == "signal_handle"):
            heard = Counter(each.object["data"] for each in signals.get(handle, ()))
            posted = self._posted.get(handles[handle], set())
            twice = [data for data, times in heard.items() if times > 1]
            assert not twice, f"{handle} has heard {twice} more than once"
            assert heard.keys() <= posted, f"{handle} has heard {heard.keys() - posted}, which nobody has posted"
            lost = posted - heard.keys() - self._zaqar.gone - self._removed
            assert not lost, f"{handle} has never heard {lost}"
            self.world.happened["heard"] += len(heard)
        departed = [
            each.id for each in self.world.records() if each.kind in (DEPARTED_QUEUE, DEPARTED_USER, DEPARTED_PROJECT)
        ]
        assert not departed, f"left behind: {departed}"
        self._check_identity()

    def _check_identity(self) -> None:
        """Each user is one of a resource, or of a thing that was retained; and each project one of a stack."""
        keys, stacks = {row.key for row in self.world.rows()}, {row.root_id for row in self.world.all_stacks()}
        users = [each for each in self.world.records() if each.kind == STACK_USER]
        retained = {each.token for each in self.world.records() if each.kind not in (STACK_USER, QUEUE)}
        users_left = (each for each in users if each.token not in retained)
        left = [each.object["name"] for each in users_left if records.key_of(each.token) not in keys]
        assert not left, f"users of deleted resources: {left}"
        # By their names: a worker may have died before it stored the id.
        names = {f"id-{each.object['name']}" for each in users}
        assert self._identity.users.keys() <= names, f"users of nobody: {self._identity.users.keys() - names}"
        projects = {f"project-{each.token}" for each in self.world.records() if each.kind == USER_PROJECT}
        assert self._identity.projects <= projects, f"projects of nobody: {self._identity.projects - projects}"
        assert {name.removeprefix("project-") for name in projects} <= stacks, f"projects without a stack: {projects}"


RING = Ring("queues", lambda seed: troubled(seed, Queues()))


@pytest.mark.parametrize("seed", seeds_to_play(4))
def test_each_message_is_one_signal(seed: int) -> None:
    RING.played(seed)


def test_messages_are_heard_in_these_worlds() -> None:
    RING.play_until(range(24), {"posted": 20, "collected": 8, "heard": 4, "kills": 4})
