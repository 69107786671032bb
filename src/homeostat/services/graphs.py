"""In-memory cache of desired graphs, by stack and content: most requests need the newest, which acceptance has left."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from homeostat.desired.compiling import compile_desired
from homeostat.desired.graphs import TEXT_BYTES, ContentCache, compile_graph
from homeostat.desired.implied import graph_of
from homeostat.desired.members import MEMBERS_PER_SHARD
from homeostat.model.desired import Definition, Identity
from homeostat.model.group import GroupDefinition
from homeostat.model.member_names import member_of_name
from homeostat.resources import groups
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks import revisions, views
from homeostat.store.stacks.contents import Content, StoredContent
from homeostat.templates import Compiled

CACHE_MAX = 20_000
"""Size of all cached graphs, in definitions of one to three KiB each."""


@dataclass(frozen=True, slots=True)
class Graph:
    """The desired graph of a revision.

    Attributes:
        compiled: None for groups and chains, whose stacks have no template text, and for the empty revision.
        definitions: The resources that should exist.
        required_by: Resource -> its dependents.
    """

    content: Content
    compiled: Compiled | None = None
    definitions: Mapping[str, Definition] = field(default_factory=dict)
    required_by: Mapping[str, list[str]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Cost in the cache: 3 + definitions in memory, and files. A group's members are made on demand, at no cost."""
        definitions = 0 if isinstance(self.definitions, Members) else len(self.definitions)
        return 3 + definitions + sum(map(len, self.content.files.values())) // TEXT_BYTES

    def shards_of(self, names: Collection[str]) -> frozenset[int] | None:
        """Return the shards that resources of these names can be in; None for any."""
        members = [member_of_name(name) for name in names]
        if self.content.kind != "group" or not all(name.isdecimal() for name in members):
            return None
        return frozenset(int(name) // MEMBERS_PER_SHARD for name in members)


class Graphs(ContentCache[Graph]):
    """Cache of graphs by stack and content. Safe to share between threads."""

    def __init__(self) -> None:
        super().__init__(CACHE_MAX, lambda graph: graph.size)

    def wanted(self, tx: Transaction, stack: StackRow) -> Graph:
        """Return the graph of the newest revision."""
        return self.of_revision(tx, stack, int(stack.revision))

    def described(self, tx: Transaction, stack: StackRow) -> Graph:
        """Return the newest graph that is not empty: the user's last description, also during a deletion."""
        wanted = self.wanted(tx, stack)
        if wanted.content.kind != "empty":
            return wanted
        # The newest revision of a stack in deletion is empty.
        number = views.described_revision(tx, stack.id)
        return self.of_revision(tx, stack, number) if number else wanted

    def of_revision(self, tx: Transaction, stack: StackRow, number: int) -> Graph:
        """Return the graph of an earlier revision. Raise LookupError when there is none."""

        def load() -> StoredContent:
            return revisions.stored(tx, stack.id, number)

        return self.get(stack.id, number, load, partial(_graph, Identity(stack.id, stack.name, stack.project)))


def _graph(identity: Identity, content: Content) -> Graph:
    if content.kind == "empty":
        return Graph(content)
    if content.kind == "group":
        return Graph(content, definitions=Members(GroupDefinition.decoded(content.template)))
    compiled = None if content.kind == "chain" else compile_desired(content, identity)
    definitions = compile_graph(content, identity, 0) if compiled is None else graph_of(compiled, content)
    return Graph(content, compiled, definitions, dependents(definitions))


def dependents(definitions: Mapping[str, Definition]) -> dict[str, list[str]]:
    """Return the dependents of each resource that has any."""
    required_by: dict[str, list[str]] = {}
    for name, definition in definitions.items():
        for required in definition.requires:
            required_by.setdefault(required, []).append(name)
    return required_by


class Members(Mapping[str, Definition]):
    """Definitions of a group's members and their companion resources, names and types only.

    They are made on demand, since there may be a million.
    """

    def __init__(self, group: GroupDefinition) -> None:
        self._group = group
        self._count = group.count
        self._skip = frozenset(group.skip)
        self._start = groups.skipped_below(self._skip)
        self._end = groups.names_end(self._count, self._skip)

    def __getitem__(self, name: str) -> Definition:
        if self._is_member(name):
            return Definition(name, groups.definition_of(self._group, name)["type"])
        companion = groups.companion_named(self._group, name)
        if companion is None:
            raise KeyError(name)
        return Definition(name, companion.resource_def["type"], requires=(member_of_name(name),))

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        return self._is_member(name) or groups.companion_named(self._group, name) is not None

    def _is_member(self, name: object) -> bool:
        if not isinstance(name, str) or not name.isdecimal() or name in self._skip:
            return False
        return self._start <= int(name) < self._end and str(int(name)) == name

    def __iter__(self) -> Iterator[str]:
        for name in groups.member_names(self._count, self._skip):
            yield name
            yield from (companion for companion, _ in groups.companions_of(self._group, name))

    def __len__(self) -> int:
        return self._count + groups.count_companions(self._group, self._count)
