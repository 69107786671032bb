"""Order of things that require each other. Iterative: a chain of any length is fine."""

from collections.abc import Iterable, Mapping


class Cycle(Exception):
    """Things that require each other in a circle; `names` — each requires the next, the last one the first."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        super().__init__(" -> ".join([*names, names[0]]))


def ordered(requirements: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """All names, each after what it requires, else in the order given; requirements on unknown names are ignored.

    Fails: Cycle. Cost: O(names + requirements).
    """
    done: dict[str, None] = {}
    for first in requirements:
        if first in done:
            continue
        trail = {first: iter(requirements[first])}
        while trail:
            name, pending = next(reversed(trail.items()))
            below = next((each for each in pending if each in requirements and each not in done), None)
            if below is None:
                del trail[name]
                done[name] = None
            elif below in trail:
                names = list(trail)
                raise Cycle(names[names.index(below) :])
            else:
                trail[below] = iter(requirements[below])
    return tuple(done)
