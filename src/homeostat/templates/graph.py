"""Topological order of names. Iterative, so a chain of any length is fine."""

from collections.abc import Collection, Mapping


class Cycle(Exception):
    """A cycle of requirements.

    Attributes:
        names: Each name requires the next, the last name the first.
    """

    def __init__(self, names: list[str]) -> None:
        self.names = names
        super().__init__(" -> ".join([*names, names[0]]))


def ordered(requirements: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Return all names in the order of their requirements, otherwise in the given order.

    Requirements on unknown names are ignored. The cost is O(names + requirements).

    Raises:
        Cycle: The requirements are circular.
    """
    done: dict[str, None] = {}
    for first in requirements:
        if first in done:
            continue
        if not requirements[first]:  # most resources of large templates: no trail is needed
            done[first] = None
            continue
        trail = {first: iter(requirements[first])}
        while trail:
            name, pending = next(reversed(trail.items()))
            below = next(
                (requirement for requirement in pending if requirement in requirements and requirement not in done),
                None,
            )
            if below is None:
                del trail[name]
                done[name] = None
            elif below in trail:
                names = list(trail)
                raise Cycle(names[names.index(below) :])
            else:
                trail[below] = iter(requirements[below])
    return tuple(done)
