"""Parts of a world: features, faults and invariants, each with its own state, events and checks.

A ring is a world with a list of parts. A part adds its events, with their weights, to `World.acts`, and hears of what
happens. Those further down a list come first where a world ends (`pass_time`, `calm`, `last_word`), and last elsewhere.
"""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from homeostat.convergence.engine import Urls
from homeostat.identity.stack_users import StackUsers
from homeostat.store.database import Database
from tests.simulation.actors import VirtualClock, Worker
from tests.simulation.watched import WatchedDatabase

if TYPE_CHECKING:
    from tests.simulation.world import World

Act = Callable[[], object]
"""An event that a part lets happen."""


class Part:
    """One feature or fault of a world, which does nothing by itself."""

    world: "World"

    @property
    def rng(self) -> random.Random:
        """The dice of the whole world: who draws from them once more changes all that follows."""
        return self.world.rng

    def dice(self, name: str) -> random.Random:
        """Dice of its own, so that worlds without it stay as they are."""
        return random.Random(f"{name} {self.world.seed}")

    @property
    def clock(self) -> VirtualClock:
        return self.world.clock

    @property
    def db(self) -> WatchedDatabase:
        return self.world.db

    def note(self, text: str) -> None:
        self.world.note(text)

    # -- processes ---------------------------------------------------------------------------------------------------

    def urls(self) -> Urls | None:
        """How the next worker reaches URLs; None where this part does not say."""
        return None

    def stack_users(self, db: Database) -> StackUsers | None:
        """The users that the next worker makes for servers, with its database; None where this part has none."""
        return None

    def hired(self, worker: Worker) -> None:
        """A worker is there."""

    def looks(self, worker: Worker) -> None:
        """A worker begins a round of looks."""

    def looked(self, worker: Worker) -> None:
        """A worker has looked: further rounds of it."""

    # -- happening ---------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Its world is made, with all processes."""

    def disturb(self) -> None:
        """What goes on before the calm."""

    def next_due(self) -> float | None:
        """When a worker has something to do for it."""
        return None

    def pass_time(self) -> bool:
        """No process has anything to do: whether something else happens before time passes."""
        return False

    # -- judging -----------------------------------------------------------------------------------------------------

    def committed(self) -> None:
        """A transaction was committed. What is wrong goes to `Watcher.wrong`: the process may catch what is raised."""

    def check(self) -> None:
        """A thread has made a step. Fails: AssertionError."""

    # -- rest --------------------------------------------------------------------------------------------------------

    def calm(self) -> None:
        """Its trouble is over."""

    def calmed(self) -> None:
        """All trouble is over."""

    def is_moving(self) -> bool:
        """Whether the world is not at rest yet for it."""
        return False

    def last_word(self) -> None:
        """No process has anything to do after the calm: users let go on what waits for them."""

    def rested(self) -> None:
        """The world is at rest, now and then more than once. Fails: AssertionError."""

    def ended(self) -> None:
        """The world has come to its end. Fails: AssertionError."""


class Occasional(Part):
    """One event of another part that only some worlds have.

    Takes: name — of the dice that decide it; share — of worlds; certain — whether all have it.
    """

    def __init__(
        self, name: str, share: float, weight: float, act: Callable[["World"], Act], *, certain: bool = False
    ) -> None:
        self._name = name
        self._share = share
        self._weight = weight
        self._act = act
        self._certain = certain

    def begin(self) -> None:
        if self.dice(self._name).random() < self._share or self._certain:
            self.world.acts.append((self._weight, self._act(self.world)))
