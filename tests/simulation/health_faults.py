"""What befalls the servers of groups with health policies: they stop, break, vanish, flap; hosts fail; URLs lie."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import greenlet

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.clouds.simulated.objects import HOSTS
from homeostat.convergence.engine import Urls
from homeostat.convergence.execution.recovery_calls import Request
from homeostat.convergence.health_checks.probes import Answer
from homeostat.model.answers import Kind
from homeostat.model.errors import Transient
from tests.simulation.actors import Actor, Worker, pause
from tests.simulation.disturbances import Disturbances
from tests.simulation.health_evidence import CheckedCloud
from tests.simulation.health_invariants import HealthInvariants
from tests.simulation.health_policies import CANARY
from tests.simulation.health_rows import Member
from tests.simulation.parts import Act, Part
from tests.simulation.places import DUE

LIES = (
    *(Answer(500, "ill"), Answer(0, "refused", Kind.REFUSED), Answer(200, "hello"), Answer(0, "timed out")),
    *(Answer(0, "no such name", Kind.UNRESOLVED), Answer(0, "not public", Kind.FORBIDDEN_BY_RULE), Answer(403, "no")),
    *(Answer(0, "no way", Kind.NO_ROUTE), Answer(0, "too busy", Kind.OWN_TIME), Answer(404, "ok"), Answer(401, "ok")),
)
CALLED = ((200, "done"), (200, "done"), (204, ""), (503, "later"), (0, "timed out"), (404, "no such server"))
"""What a webhook answers."""
WELL, SILENT = Answer(200, "ok"), Answer(0, "no route to host")


def weather_of(rng: random.Random) -> CloudBehaviour:
    faults = Faults(
        unreachable=rng.choice((0.0, 0.0, 0.05)),
        refused=rng.choice((0.0, 0.05)),
        lost=rng.choice((0.0, 0.1)),
        error=rng.choice((0.0, 0.0, 0.05)),
        fence=rng.choice((0.0, 0.5)),
        retry_after_s=rng.choice((None, 1.0)),
    )
    return CloudBehaviour(
        build_s=rng.choice((0.0, 3.0)),
        delete_s=rng.choice((0.0, 2.0)),
        listing_lag_s=rng.choice((0.0, 0.0, 2.0)),
        idempotent=rng.random() < 0.5,
        faults=faults,
    )


Judgement = Callable[[Member], bool]


class HealthFaults(Part):
    """invariants — of health policies; cloud — the only one; places — that have workers; cut_off — those from which no
    URL is reached; deserted — those from which nobody asks.

    Takes: nature — decides how often what happens; changes, wants — whether the newest revision of its stack changes a
    member, and has it at all.
    """

    def __init__(self, nature: random.Random, places: Sequence[str], changes: Judgement, wants: Judgement) -> None:
        self._nature = nature
        self.places = places
        self._changes, self._wants = changes, wants
        self.cut_off: set[str] = set()
        self.deserted: set[str] = set()
        self._staff: list[Worker] = []
        self._looks_due: dict[str, float] = {}
        self._looks_read_at = -1
        self._leapt = 0.0
        self._lies: dict[tuple[str, str], Answer] = {}
        self._seen_from: dict[greenlet.greenlet, tuple[str, bool]] = {}

    def begin(self) -> None:
        (cloud,) = self.world.clouds.values()
        assert isinstance(cloud, CheckedCloud)
        self.cloud = cloud
        self._disturbances = faults = self.world.part(Disturbances)
        often: list[tuple[float, Act]] = [
            *((1.5, self._flap), (1.0, self._ail_many), (1.0, self._cut_observers_off), (0.5, self._hide_hosts)),
            *((0.3, self._lose_half), (0.7, self._pause_control_plane), (0.4, self._fill_hosts)),
            *((1.0, self._doubt_fences), (0.7, faults.black_out), (0.5, faults.limit_rate), (0.5, faults.hide)),
            *((1.0, self._kill), (0.7, faults.die_inside), (0.7, faults.make_flaky), (0.5, faults.cut_off)),
            *((1.0, self._freeze), (0.5, self._jump_ahead), (0.5, faults.set_clock), (0.5, faults.wake_twice)),
        ]
        self.world.acts += [(6.0, self._ail), (2.0, self._fail_host), (2.5, self._lie), (1.0, self._kill)]
        self.world.acts += [(weight * self._nature.choice((0, 1, 1, 3)), act) for weight, act in often]
        self.invariants = HealthInvariants(self.db, cloud, self.clock.now, self._lived, self._changes, self._wants)

    # -- workers -----------------------------------------------------------------------------------------------------

    def urls(self) -> Urls:
        """One that has died is followed by one at its place."""
        self._staff = [each for each in self._staff if each.alive]
        staff = Counter(each.urls.vantage for each in self._staff)
        place = min(self.places, key=lambda each: staff[each])
        return Urls(get=self._get, call=self._call, vantage=place)

    def hired(self, worker: Worker) -> None:
        """The invariants know of its passes; where there are several places, it asks the URLs at its own."""
        run = worker.reconciler.run

        def judged(lease: Any) -> None:
            self.invariants.pass_begins()
            run(lease)
            self.invariants.pass_ends()

        worker.reconciler.run = judged  # type: ignore[method-assign]
        if len(self.places) > 1:
            worker.actors.append(Actor(f"{worker.name}.see", partial(self._see, worker)))
        self._staff.append(worker)

    def looks(self, worker: Worker) -> None:
        self._begin_round(worker.urls.vantage)

    def _see(self, worker: Worker) -> None:
        if self._is_due(worker.urls.vantage):
            self._begin_round(worker.urls.vantage)
            try:
                worker.engine.vantage.round()
            except Transient:
                return

    def _kill(self) -> None:
        self._disturbances.kill()
        self.invariants.note("killed in the middle")

    def _freeze(self) -> None:
        self._disturbances.freeze()
        self.invariants.note("frozen in the middle")

    def next_due(self) -> float | None:
        times = (self._looks_of().get(each.urls.vantage) for each in self._staff if self._sees(each))
        return min((at for at in times if at is not None), default=None)

    def _is_due(self, place: str) -> bool:
        """Is a URL due to be asked there, by workers that are not late? No call of a process: nobody dies here."""
        at = self._looks_of().get(place)
        return at is not None and at <= self.clock.database() and place not in self.deserted

    def _sees(self, worker: Worker) -> bool:
        return worker.ready and worker.urls.vantage not in self.deserted

    def _looks_of(self) -> dict[str, float]:
        """Place -> when URLs are asked there next, in worlds with several; read once a commit."""
        if len(self.places) > 1 and self._looks_read_at != self.world.watcher.commits:
            self._looks_read_at = self.world.watcher.commits
            self._looks_due = dict(self.db.raw.execute(DUE).fetchall())
        return self._looks_due

    def committed(self) -> None:
        self.invariants.committed()

    def check(self) -> None:
        assert not self.invariants.wrong, "; ".join(self.invariants.wrong)

    def rested(self) -> None:
        self.invariants.check_rest(self.cloud)

    def ended(self) -> None:
        self.world.happened.update(self.invariants.happened)

    def _lived(self) -> float:
        return self.clock.time - self._leapt

    # -- URLs --------------------------------------------------------------------------------------------------------

    def _begin_round(self, place: str) -> None:
        """In one round an observer reaches all URLs or none."""
        self.invariants.evidence.begin_round()
        self._seen_from[greenlet.getcurrent()] = (place, place in self.cut_off)

    def _get(self, url: str, _verify: bool, _patience_s: float) -> Answer:
        pause()
        place, cut_off = self._seen_from[greenlet.getcurrent()]
        if url == CANARY:
            return SILENT if cut_off else WELL
        handle = url.split("/")[2]
        answer = SILENT if cut_off else self._answer(handle, place)
        self.invariants.evidence.said(handle, answer, cut_off=cut_off, askable=self.invariants.askable(), place=place)
        pause()
        return answer

    def _answer(self, handle: str, place: str) -> Answer:
        server = self.cloud.things("server").get(handle)
        if server is None or server["status"] != "active" or "NETWORK" in self.invariants.evidence.cut[handle]:
            return SILENT
        return self._lies.get(("", handle)) or self._lies.get((place, handle), WELL)

    def _call(self, request: Request) -> tuple[int, str]:
        """A tool of the operators is called: mostly it starts a server again, and says so."""
        pause()
        handle = request.url.split("/")[3]
        self.invariants.called(request.headers["Idempotency-Key"], handle)
        answer = self.rng.choice(CALLED)
        server = self.cloud.things("server").get(handle)
        mends = answer[0] in (0, 200) and "COMPUTE" not in self.invariants.evidence.cut[handle]
        if mends and server is not None and server["status"] in ("stopped", "error"):
            self.cloud.change(handle, status="active")  # where the answer is lost, too
        pause()
        return answer

    def _lie(self) -> None:
        """The URL of a server answers as if it were ill, or not at all, for a while."""
        self.lie_to("")

    def lie_to(self, place: str) -> None:
        handle = self.one()
        if handle is not None:
            to, answer = (place, handle), self.rng.choice(LIES)
            self._lies[to] = answer
            story = f"{handle} says {answer} to {place or 'all'}"
            self.world.until((10.0, 40.0, 90.0), lambda: self._lies.pop(to, None), story)
            self.invariants.note("a URL lies")

    def _cut_observers_off(self) -> None:
        """Observers reach no URL for a while."""
        self.cut_off.update(self.places)
        self.world.until((20.0, 60.0, 200.0), self.cut_off.clear, "no URL can be reached")
        self.invariants.happened["no URL can be reached"] += 1

    # -- servers and hosts -------------------------------------------------------------------------------------------

    def one(self) -> str | None:
        handles = sorted(self.cloud.things("server"))
        return self.rng.choice(handles) if handles else None

    def _ail(self) -> None:
        """A server breaks, stops or pauses by itself, and perhaps comes back; or it vanishes."""
        handle = self.one()
        if handle is None:
            return
        status = self.rng.choice(("stopped", "stopped", "error", "error", "paused", "soft_deleted", "gone"))
        if status == "gone":
            self.cloud.vanish(handle)
            self.note(f"{handle} vanishes")
        else:
            self._set(handle, status)
            if self.rng.random() < 0.3:
                self.world.until((1.0, 8.0, 30.0), lambda: self._come_back(handle, status), f"{handle} may come back")
        self._disturbances.sight(handle)

    def _set(self, handle: str, status: str) -> None:
        """Unless its power is cut off: then it is off, whatever else befalls it."""
        if "COMPUTE" in self.invariants.evidence.cut[handle]:
            return
        self.cloud.change(handle, status=status, fault="by hand")
        self.note(f"{handle} is {status}")

    def _come_back(self, handle: str, status: str) -> None:
        """Unless something else has become of it; what is cut off is left so."""
        if (
            "COMPUTE" not in self.invariants.evidence.cut[handle]
            and self.cloud.things("server").get(handle, {}).get("status") == status
        ):
            self._set(handle, "active")

    def _flap(self) -> None:
        """A server stops and comes back, several times."""
        handle = self.one()
        if handle is None:
            return
        for turn in range(self.rng.choice((2, 4))):
            at = self.clock.time + 15.0 * turn
            self.world.ends.append((at, lambda: self._stop_again(handle)))
            self.world.ends.append((at + 7.0, lambda: self._come_back(handle, "stopped")))
        self.note(f"{handle} flaps")

    def _stop_again(self, handle: str) -> None:
        if self.cloud.things("server").get(handle, {}).get("status") == "active":
            self._set(handle, "stopped")

    def _ail_many(self) -> None:
        """Several servers at once."""
        handles = sorted(self.cloud.things("server"))
        for handle in self.rng.sample(handles, min(len(handles), self.rng.choice((2, 3, 5)))):
            self._set(handle, self.rng.choice(("stopped", "error")))

    def _lose_half(self) -> None:
        """Half of all servers vanish at once; the others are there."""
        handles = sorted(self.cloud.things("server"))
        for handle in self.rng.sample(handles, len(handles) // 2):
            self.cloud.vanish(handle)
            self._disturbances.sight(handle)
        self.invariants.note("half is lost")

    def _fail_host(self) -> None:
        up = sorted(set(HOSTS) - self.cloud.hosts.down)
        if len(up) < 2:
            return
        host = self.rng.choice(up)
        self.cloud.fail_host(host)
        self.world.until((15.0, 60.0, 200.0), lambda: self._bring_back(host), f"{host} fails")
        for handle, each in self.cloud.things("server").items():
            if each["host"] == host:
                self._disturbances.sight(handle)

    def _bring_back(self, host: str) -> None:
        """People do so: what was cut off with the host runs again, whatever was made in its place."""
        there = self.cloud.things("server")
        self.invariants.evidence.brought_back |= {each for each, server in there.items() if server["host"] == host}
        self.cloud.fail_host(host, back=True)

    def _pause_control_plane(self) -> None:
        """For a while it hears of no host, though all work; then of one after the other."""
        if self.cloud.hosts.unheard:
            return
        self.cloud.hosts.pause(self.clock.time)
        self.invariants.note("the control plane pauses")
        until = self.clock.time + self.rng.choice((10.0, 60.0, 90.0))
        for host in HOSTS:
            at = until + self.rng.choice((0.0, 0.0, 5.0, 15.0))
            self.world.ends.append((at, partial(self.cloud.hosts.hear, host)))
        self.note(f"the control plane pauses until {until - 1_000_000:.2f}")

    def _fill_hosts(self) -> None:
        """For a while no host has room for another server."""
        self.cloud.hosts.no_room = True
        self.world.until((20.0, 60.0, 200.0), self._make_room, "hosts are full")

    def _make_room(self) -> None:
        self.cloud.hosts.no_room = False

    def _hide_hosts(self) -> None:
        """Policy keeps hosts from the service for a while."""
        self.cloud.hosts.hidden = True
        self.world.until((20.0, 60.0), self._show_hosts, "hosts are hidden")

    def _show_hosts(self) -> None:
        self.cloud.hosts.hidden = False

    def _doubt_fences(self) -> None:
        """For a while the cloud confirms nothing that is cut off."""
        self._disturbances.for_a_while(self.cloud, Faults(fence=1.0), "confirms no fence")

    def _jump_ahead(self) -> None:
        """A long time passes at once."""
        before = self.clock.time
        self._disturbances.jump_ahead()
        self._leapt += self.clock.time - before

    # -- the end -----------------------------------------------------------------------------------------------------

    def calmed(self) -> None:
        self.world.end_all()
        self._lies.clear()
        self.cut_off.clear()
        self.deserted.clear()
        for host in sorted(self.cloud.hosts.down):
            self._bring_back(host)
        self.cloud.hosts.unheard.clear()
        self.cloud.hosts.hidden = self.cloud.hosts.no_room = False


class PlaceFaults(Part):
    """What befalls single places from which URLs are asked, where a world has several.

    Takes: rng — of its own; move_places — has a policy name others.
    """

    def __init__(self, rng: random.Random, move_places: Act) -> None:
        self._dice, self._move_places = rng, move_places

    def begin(self) -> None:
        self._faults = self.world.part(HealthFaults)
        often = ((2.0, self._cut_off), (1.5, self._desert), (2.5, self._disagree), (1.0, self._move_places))
        if len(self._faults.places) > 1:
            self.world.acts += [(weight * self._dice.choice((0, 1, 1, 2)), act) for weight, act in often]

    def _cut_off(self) -> None:
        """From one place no URL can be reached for a while; the others see."""
        self._without(self._faults.cut_off, (20.0, 60.0, 200.0, 700.0), "{} can reach no URL", "a place is cut off")

    def _desert(self) -> None:
        """The workers of one place ask no URLs for a while: they are late, or there are none."""
        self._without(self._faults.deserted, (20.0, 60.0, 200.0), "nobody asks from {}", "a place is deserted")

    def _without(self, places: set[str], lengths_s: Sequence[float], story: str, happened: str) -> None:
        place = self.rng.choice(self._faults.places)
        places.add(place)
        self.world.until(lengths_s, partial(places.discard, place), story.format(place))
        self._faults.invariants.happened[happened] += 1

    def _disagree(self) -> None:
        """From one place the URL of a server answers as if it were ill, or not at all, for a while."""
        self._faults.lie_to(self.rng.choice(self._faults.places))
        self._faults.invariants.happened["places disagree"] += 1
