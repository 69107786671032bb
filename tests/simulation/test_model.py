"""A state machine against a model a page long: whatever users, crashes and disturbances do in whatever order, what is
there at rest is what was wanted last. Hypothesis looks for the shortest story that breaks it."""

from contextlib import closing
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from homeostat.clouds.simulated import CloudBehaviour
from homeostat.model.errors import Rejected
from homeostat.model.status import Status
from tests.simulation.templates import GROUP, DesiredStack
from tests.simulation.world import World

NAMES = st.sampled_from(("red", "blue"))
SLOW = CloudBehaviour(build_s=2.0, delete_s=1.0, listing_lag_s=1.0, idempotent=False)

Resource = tuple[str, str]
"""Kind (`server`, `volume`, `group`), and what is wanted of it: flavor, description, number of members."""
RESOURCES = st.dictionaries(
    st.sampled_from(("a", "b", "c")),
    st.one_of(
        st.tuples(st.just("server"), st.sampled_from(("small", "large"))),
        st.tuples(st.just("volume"), st.sampled_from(("one", "two"))),
        st.tuples(st.just("group"), st.sampled_from(("0", "1", "2", "3"))),
    ),
    max_size=3,
)


def desired_of(stack: str, resources: dict[str, Resource], *, chained: bool) -> DesiredStack:
    """As a template: each thing says in the cloud whose it is. chained — each requires the one before."""
    found: dict[str, Any] = {}
    for name, (kind, wanted) in sorted(resources.items()):
        found[name] = _resource(f"{stack}.{name}", kind, wanted)
        if chained and len(found) > 1:
            found[name]["depends_on"] = sorted(found)[-2]
    return DesiredStack(found)


def _resource(label: str, kind: str, wanted: str) -> dict[str, Any]:
    if kind == "server":
        properties = {"image": "i", "flavor": wanted, "metadata": {"of": label}}
        return {"type": "OS::Nova::Server", "properties": properties}
    if kind == "volume":
        return {"type": "OS::Cinder::Volume", "properties": {"size": 1, "description": f"{label} {wanted}"}}
    member = {"image": "i", "flavor": "f", "metadata": {"of": f"{label}.%index%"}}
    return {
        "type": GROUP,
        "properties": {"count": int(wanted), "resource_def": {"type": "OS::Nova::Server", "properties": member}},
    }


def things_of(stack: str, resources: dict[str, Resource]) -> list[str]:
    """What there should be in the cloud."""
    found = []
    for name, (kind, wanted) in resources.items():
        label = f"{stack}.{name}"
        members = [f"{label}.{number} f" for number in range(int(wanted))] if kind == "group" else [f"{label} {wanted}"]
        found += members
    return found


def value_of(thing: dict[str, Any]) -> str:
    return f"{thing['metadata']['of']} {thing['flavor']}" if "flavor" in thing else str(thing["description"])


class Stacks(RuleBasedStateMachine):
    """wanted — the model: name of a live stack -> its resources."""

    @initialize(seed=st.integers(0, 9999), workers=st.integers(1, 2))
    def begin(self, seed: int, workers: int) -> None:
        """The seed decides who goes on when."""
        self.world = World(seed, SLOW, workers=workers)
        self.wanted: dict[str, dict[str, Resource]] = {}
        self.ids: dict[str, str] = {}
        self.revisions: dict[tuple[str, int], dict[str, Resource]] = {}

    # -- users -------------------------------------------------------------------------------------------------------

    @rule(name=NAMES, resources=RESOURCES, chained=st.booleans())
    def create_or_update(self, name: str, resources: dict[str, Resource], chained: bool) -> None:
        stack_service = self.world.apis[0].stack_service
        request = desired_of(name, resources, chained=chained).request()
        if name in self.wanted:
            revision = stack_service.update(self.ids[name], request)
        elif any(stack.name == name and stack.deleted_at is None for stack in self.world.all_stacks()):
            return  # its deletion is under way, and the name still taken
        else:
            self.ids[name], revision = stack_service.create("p", None, name, request), 1
        self.wanted[name] = self.revisions[name, revision] = resources

    @precondition(lambda self: self.wanted)
    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        if name in self.wanted:
            self.world.apis[0].stack_service.delete(self.ids[name])
            del self.wanted[name]

    @precondition(lambda self: any(kind == "group" for each in self.wanted.values() for kind, _ in each.values()))
    @rule(name=NAMES, count=st.integers(0, 3))
    def scale(self, name: str, count: int) -> None:
        resources = {
            each: (kind, str(count) if kind == "group" else wanted)
            for each, (kind, wanted) in self.wanted.get(name, {}).items()
        }
        if name in self.wanted:
            self.create_or_update(name, resources, False)

    @precondition(lambda self: self.wanted)
    @rule(name=NAMES)
    def cancel(self, name: str) -> None:
        """Back to what was complete last, if an update is under way."""
        if name not in self.wanted:
            return
        (stack,) = [each for each in self.world.all_stacks() if each.id == self.ids[name]]
        try:
            self.world.apis[0].stack_service.cancel(stack.id, roll_back=True)
        except Rejected:
            return
        complete = stack.complete_revision
        self.wanted[name] = {} if complete is None else self.revisions[name, complete]
        self.revisions[name, stack.revision + 1] = self.wanted[name]

    # -- trouble -----------------------------------------------------------------------------------------------------

    @rule(which=st.integers(0, 20), how=st.sampled_from(("vanish", "stop", "change")))
    def disturb(self, which: int, how: str) -> None:
        """A user removes a thing by hand, stops a server, changes what belongs to us."""
        cloud = self.world.clouds["p"]
        handles = sorted(cloud.things())
        if not handles:
            return
        handle = handles[which % len(handles)]
        if how == "vanish":
            cloud.vanish(handle)
        elif handle.startswith("server"):
            changes = {"status": "stopped"} if how == "stop" else {"metadata": {"of": "nobody"}}
            cloud.change(handle, **changes)
        else:
            cloud.change(handle, description="nobody's")

    @rule(calls=st.integers(0, 30))
    def crash(self, calls: int) -> None:
        """A worker dies at one of its next calls; another one takes its place."""
        self.go_on(calls)
        self.world.workers[0].kill()
        self.world.replace_dead()

    @rule(seconds=st.sampled_from((0.1, 1.0, 6.0, 30.0)))
    def tick(self, seconds: float) -> None:
        self.world.clock.time += seconds

    @rule(steps=st.integers(1, 60))
    def go_on(self, steps: int) -> None:
        for _ in range(steps):
            if not self.world.step():
                self.world.clock.time += 0.5

    # -- the invariant -------------------------------------------------------------------------------------------------

    @rule()
    def settle(self) -> None:
        self.world.settle()
        live = {each.name: each for each in self.world.all_stacks() if each.parent_id is None and not each.deleted_at}
        assert sorted(live) == sorted(self.wanted)
        assert all(each.status == Status.COMPLETE for each in live.values()), live
        expected = [thing for name, resources in self.wanted.items() for thing in things_of(name, resources)]
        assert sorted(map(value_of, self.world.things().values())) == sorted(expected)

    def teardown(self) -> None:
        if hasattr(self, "world"):
            with closing(self.world):
                self.settle()


TestStacks = Stacks.TestCase
TestStacks.settings = settings(
    max_examples=60,
    stateful_step_count=16,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
