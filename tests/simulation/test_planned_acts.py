"""What a preview lists equals the acts that follow: random changes of stacks in random states.

A state is a mixture of things that are gone, broken or drifted, marks, a failed update before, locks, convergence
on or off, and healing that asks. `HOMEOSTAT_SEEDS=1000` plays more.
"""

import random
from dataclasses import dataclass, field

import pytest

from homeostat.model.errors import Rejected
from homeostat.model.plan import Verb
from homeostat.planner.report.preview import FAILS, WAITS, ResourcePreview
from homeostat.resources.nested import STACK
from homeostat.resources.registry import kind_of
from homeostat.resources.schema import UNKNOWN
from homeostat.services.actions import ConvergenceSettings
from homeostat.services.marks import MarkRequest, Marks
from homeostat.services.preview import Preview, all_of
from homeostat.templates.tree import holds
from tests.component.previewed import Place, Resources, acting, done, preview, state_of, together
from tests.component.running import Service, double, group, server, volume
from tests.simulation.playing import replay, seeds_to_play

pytestmark = pytest.mark.heavy

CHANGES = 3
"""Changes of one stack, one after the other."""
LOCK = {"level": "stacks", "owner": None, "owner_id": None, "reason": None, "at": 0.0, "expires_at": None}
INNER = """
heat_template_version: 2018-08-31
parameters: {word: {type: string}}
resources:
  s: {type: OS::Nova::Server, properties: {image: i, flavor: small, user_data: {get_param: word}}}
  v: {type: OS::Cinder::Volume, properties: {size: 1}}
"""
FILES = {"inner.yaml": INNER}


@dataclass
class Story:
    """One stack, and what happened to it, for the message of a failure."""

    rng: random.Random
    service: Service = field(default_factory=Service)
    stack_id: str = ""
    lines: list[str] = field(default_factory=list)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    # -- templates ---------------------------------------------------------------------------------------------------

    def one(self, earlier: list[str]) -> Resources:
        """Some resource, which may require one before it."""
        rng = self.rng
        word = str(rng.randint(0, 2))
        kinds: list[Resources] = [
            server(name=f"n{word}", user_data=str(rng.randint(0, 1)), metadata={"a": word}),
            server(flavor=rng.choice(("small", "large")), metadata={"a": word}),
            volume(description=word),
            {"type": "OS::Heat::Value", "properties": {"value": word}},
            {"type": "OS::Heat::RandomString", "properties": {"length": rng.randint(4, 6)}},
            double(value=word),
            group(rng.randint(1, 3), server(user_data=word, metadata={"a": str(rng.randint(0, 1))})),
            {"type": "inner.yaml", "properties": {"word": word}},
        ]
        chosen = rng.choice(kinds)
        if earlier and self.chance(0.3):
            chosen["depends_on"] = rng.choice(earlier)
        elif earlier and self.chance(0.2):
            chosen = {"type": "OS::Heat::Value", "properties": {"value": {"get_resource": rng.choice(earlier)}}}
        return chosen

    def grown(self) -> Resources:
        resources: Resources = {}
        for number in range(self.rng.randint(1, 5)):
            resources[f"r{number}"] = self.one(sorted(resources))
        return resources

    def changed(self, resources: Resources) -> Resources:
        """The same with none to three of its resources changed, added or left out."""
        after = dict(resources)
        for _ in range(self.rng.choice((0, 1, 1, 1, 2, 3))):
            name = f"r{self.rng.randint(0, 5)}"
            used = any(name in (each.get("depends_on"), str(each["properties"])) for each in after.values())
            if name in after and not used and f"'{name}'" not in str(after) and self.chance(0.25):
                del after[name]
            else:
                after[name] = self.one([each for each in sorted(after) if each < name])
        return after

    # -- trouble -----------------------------------------------------------------------------------------------------

    def trouble(self) -> None:
        """Let some things get lost, break or drift, and mark others; then it is seen, or not yet judged."""
        rng, cloud = self.rng, self.service.cloud
        for handle, thing in sorted(cloud.things().items()):
            kind = "server" if handle in cloud.things("server") else ""
            if not self.chance(0.3):
                continue
            what = rng.choice(("lost", "drifted", "broken", "stopped"))
            if what == "lost":
                cloud.vanish(handle)
            elif not kind:
                continue
            elif what == "drifted":
                cloud.change(handle, metadata={"a": "hacked"})
            else:
                cloud.change(handle, status="error" if what == "broken" else "stopped")
            self.lines.append(f"{thing.get('name')} is {what}")
        rows = [row for row in self.service.rows(self.stack_id) if row.handle and row.action != "DELETE"]
        if rows and self.chance(0.2):
            name = rng.choice(sorted(row.name for row in rows))
            self.lines.append(f"{name} is marked")
            try:
                Marks(self.service.db).mark(self.stack_id, MarkRequest(True, "it smells"), {"": name})
            except Rejected as refused:
                self.lines.append(str(refused))
        if self.chance(0.5):
            self.service.live(130.0)
        else:
            self.service.clock.time += 70.0
            self.service.observer.round()

    def switch(self) -> None:
        settings = ConvergenceSettings(
            {"converge": self.chance(0.4)}, healing={"policy": "ask" if self.chance(0.25) else "replace"}
        )
        self.service.actions.switch(self.stack_id, settings)
        self.service.live(1.0)
        self.lines.append(f"{settings}")

    # -- beside each other -------------------------------------------------------------------------------------------

    def compare(self, resources: Resources) -> None:
        """Preview an update, make it, and compare."""
        service = self.service
        locked = self.chance(0.05)
        if locked:
            service.actions.lock(self.stack_id, LOCK, lambda _: True)
            service.rest()
        self.lines.append(f"update to {resources}")
        if locked:
            self.both_refuse(resources)
            return
        shown = preview(service, self.stack_id, resources, files=FILES)
        before = state_of(service)
        with acting(service) as acts:
            service.update(self.stack_id, resources, files=FILES)
            service.live(400.0)
        happened = done(before, state_of(service))
        healed = {
            place
            for place, verbs in acts.items()
            if place not in happened and place in before and verbs & {Verb.UPDATE, Verb.OPERATE}
        }
        self.judge(shown, happened | dict.fromkeys(healed, "updated"), healed)

    def both_refuse(self, resources: Resources) -> None:
        """Check that the preview of a locked stack is refused as its update is; unlock it."""
        said = []
        for act in (preview, Service.update):
            with pytest.raises(Rejected) as refused:
                act(self.service, self.stack_id, resources, files=FILES)
            said.append(str(refused.value))
        assert said[0] == said[1], self.lines
        self.service.actions.unlock(self.stack_id, lambda _: True)
        self.service.rest()

    def judge(self, shown: Preview, happened: dict[Place, str], healed: set[Place]) -> None:
        """Compare; healed — what was acted on while it should be what it was.

        What an update that fails does not reach is left, or healed as it was.
        """
        notes: dict[Place, list[ResourcePreview]] = {}
        for each, note in all_of(shown):
            notes.setdefault((*each.path, note.name), []).append(note)
        state = self.service.state(self.stack_id)
        said = [f"{'/'.join(place)}: {note.fate} {note.why}" for place, found in notes.items() for note in found]
        story = "\n".join([*self.lines, f"{state}: {self.service.stack(self.stack_id).reason}", *said, f"{happened}"])
        fails = any(note.why.startswith(FAILS) for found in notes.values() for note in found)
        waits = any(note.why.startswith(WAITS) for found in notes.values() for note in found)
        if fails:  # as an update; or as a check, where that is of something that the update does not reach
            assert state in ("UPDATE_FAILED", "CHECK_FAILED"), story
        elif not waits:
            assert state == "UPDATE_COMPLETE", story
        self.lines.append(state)
        for place in notes.keys() | happened.keys():
            found = notes.get(place, [])
            expected = together(found) if found else "unchanged"
            if any(note.why.startswith(FAILS) for note in found):
                expected = "unchanged"
            became = happened.get(place, "unchanged")
            if any(kind_of(note.type) == STACK or note.type == "inner.yaml" for note in found) and "updated" in (
                expected,
                became,
            ):
                continue  # what counts is what is in it
            unknown = any(holds(dict(note.after), UNKNOWN) for note in found)
            less = fails or waits or (unknown and expected == "updated")
            left = became == "unchanged" or (fails and place in healed)
            assert became == expected or (less and left), f"{place}: {expected}, {became}\n{story}"


@pytest.mark.parametrize("seed", seeds_to_play(20))
def test_what_a_preview_lists_is_what_is_done(seed: int) -> None:
    story = Story(random.Random(seed))
    story.lines.append(replay(seed, "planned_acts"))
    resources = story.grown()
    story.lines.append(f"create {resources}")
    story.stack_id = story.service.create(resources, files=FILES)
    story.service.rest()
    assert story.service.state(story.stack_id) == "CREATE_COMPLETE"
    for _ in range(CHANGES):
        story.switch()
        story.trouble()
        resources = story.changed(resources)
        story.compare(resources)
