"""The things of one kind in an OpenStack: how they are listed, made, changed and deleted, and what they look like here.

Most collections of OpenStack's services are alike, so a kind is a class with a few facts: its path, the keys of its
bodies, the place of its token. What is special about it overrides a method.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeVar
from urllib.parse import quote

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.changed_servers import ServerChanges
from homeostat.clouds.openstack.service import Service, Wire
from homeostat.clouds.openstack.tokens import AsId, Joined, TokenPlace
from homeostat.clouds.port import Creation
from homeostat.kinds.registry import KINDS
from homeostat.model.errors import HomeostatError, Rejected, Terminal, ambiguous

LOG = logging.getLogger(__name__)
UNFINISHED = "_unfinished"
"""Field of what was made without all that it needs."""
FEW = 3
"""Up to this many things are asked for one by one; more are looked up in the list."""


T = TypeVar("T")
U = TypeVar("U")


class CloudOfCollections(Protocol):
    """What a collection uses of the cloud that it is part of.

    Attributes:
        service: Type of a service -> its client for the project.
        server_changes: What is noted of servers that were changed lately.
    """

    service: Callable[[str], Service]
    server_changes: ServerChanges

    @property
    def collections(self) -> Mapping[str, "Collection"]:
        """Kind -> its collection."""

    def side_by_side(self, act: Callable[[T], U], items: Sequence[T]) -> list[U]:
        """Return the results of an action for each item, in order; several run at once."""

    def known(self, kind: str, name: str, resolve: Callable[[], str | None]) -> str | None:
        """Return the id of a name, from the cache if it was resolved lately."""


class Collection:
    """The things of one kind, as one project sees them.

    Attributes:
        kind: Kind of the port.
        service: Type of the service in the catalogue.
        path: Path of the collection.
        key: Key of one thing in a body; "" where the body is the thing itself.
        keys: Key of the list.
        token: Place of the token.
        update_method: HTTP method of changes.
        renamed: Field of the kind -> field of the service, where the two differ.
        statuses: Word of the service's `status`, in lower case -> word of the kind, where the two differ.
        names: Field by which users name things.
        filtered_by_name: Whether users can filter the list by it, or such a filter is ignored.
        detail: Path of the list with all fields, below `path`.
        cleared: Field -> what it is set to when a specification names it no more, where the service takes no null.
        further_looks: In words, the requests that a look at many things at rest costs beyond one list of all; "" for
            no more than a fixed number.
    """

    kind: ClassVar[str]
    service: ClassVar[str]
    path: ClassVar[str]
    key: ClassVar[str] = ""
    keys: ClassVar[str] = ""
    token: ClassVar[TokenPlace]
    update_method: ClassVar[str] = "PUT"
    renamed: ClassVar[Mapping[str, str]] = {}
    statuses: ClassVar[Mapping[str, str]] = {}
    names: ClassVar[str] = "name"
    filtered_by_name: ClassVar[bool] = True
    detail: ClassVar[str] = ""
    cleared: ClassVar[Mapping[str, Any]] = {}
    further_looks: ClassVar[str] = ""

    def __init__(self, cloud: CloudOfCollections) -> None:
        self.cloud = cloud

    @property
    def api(self) -> Service:
        """The service that has the collection."""
        return self.cloud.service(self.service)

    # -- looking -----------------------------------------------------------------------------------------------------

    def list(self, **filters: Any) -> Iterator[Wire]:
        """Yield all things of the project that fit the filters.

        Raises:
            Transient: The service does not answer.
        """
        return self.api.list(self.path + self.detail, self.keys, **filters)

    def get(self, handle: str) -> Wire:
        """Return one thing.

        Raises:
            Missing: It does not exist.
            Transient: The service does not answer.
        """
        return self._thing(self.api.get(self.path_of(handle)))

    def observe(self, handles: Sequence[str]) -> dict[str, Wire]:
        """Return handle -> thing, for those that exist.

        A few are asked for one by one, more with one list; whatever the list leaves out is asked for by itself, since
        only an answer about the thing shows that it is absent.
        """
        wanted = set(handles)
        if len(wanted) <= FEW:
            return self._each(wanted)
        found: dict[str, Wire] = {}
        for thing in self.candidates(wanted):
            handle = self.handle_of(thing)
            if handle in wanted:
                found[handle] = thing
        return found | self._each(wanted - found.keys())

    def candidates(self, handles: set[str]) -> Iterator[Wire]:
        """Yield things among which those with these handles are, if they exist."""
        return self.list()

    def _each(self, handles: set[str]) -> dict[str, Wire]:
        def look(handle: str) -> Wire | None:
            try:
                return self.get(handle)
            except Missing:
                return None

        looks = zip(sorted(handles), self.cloud.side_by_side(look, sorted(handles)), strict=True)
        return {handle: thing for handle, thing in looks if thing is not None}

    def find(self, tokens: Sequence[str]) -> dict[str, Wire]:
        """Return token -> the thing that carries it, for those that exist.

        Raises:
            Transient: The service does not answer.
        """
        if isinstance(self.token, Joined):
            return {}
        if isinstance(self.token, AsId):
            by_id = {self.token.id_of(token): token for token in tokens}
            return {by_id[handle]: thing for handle, thing in self._each(set(by_id)).items()}
        wanted, found = set(tokens), dict[str, Wire]()
        for query in self.token.filters(sorted(wanted)):
            for thing in self.list(**query):
                token = self.token.read(thing)
                if token in wanted:
                    found[token] = thing
        return found

    def resolve(self, name: str) -> str | None:
        """Return the handle of the thing with this name or id; None if there is none.

        Raises:
            Rejected: Several things have the name.
            Transient: The service does not answer.
        """
        try:
            return self.handle_of(self.get(name))
        except Missing:
            pass
        except Terminal as error:  # a name that the service does not take for one, nor for an id
            LOG.info("%s cannot be looked up by id, so the list is searched: %s", self.kind, error)
        named = [each for each in self._maybe_named(name) if self.token.hide(each).get(self.names) == name]
        if len(named) > 1:
            raise ambiguous(name)
        return self.handle_of(named[0]) if named else None

    def _maybe_named(self, name: str) -> Sequence[Wire]:
        """Return things among which those with the name are.

        Not every service knows the filter by name: one that does not gives the whole list, or refuses the request, and
        some let administrators alone use it.
        """
        if self.filtered_by_name and self.token.field != self.names:
            try:
                return [*self.list(**{self.names: name})]
            except Terminal as error:
                LOG.info("%s cannot be looked up by name, so the list is searched: %s", self.kind, error)
        return [*self.list()]

    def id_of(self, name: Any) -> Any:
        """Return the id of the thing that a specification names; what is empty stays so.

        Raises:
            Terminal: There is no such thing, or there are several.
        """
        if not name:
            return name
        try:
            found = self.cloud.known(self.kind, str(name), lambda: self.resolve(str(name)))
        except Rejected as error:
            raise Terminal(str(error)) from error
        if found is None:
            raise Terminal(f"there is no {self.kind.replace('_', ' ')} with the name or id {name}")
        return found

    def reference(self, kind: str, name: Any) -> Any:
        """Return the id of another thing that a specification names; the name itself where this cloud has no such kind.

        Raises:
            Terminal: There is no such thing, or there are several.
        """
        named = self.cloud.collections.get(kind)
        return named.id_of(name) if named is not None else name

    def complete(self, things: Mapping[str, Wire]) -> Mapping[str, Wire]:
        """Return things with what a look at them leaves out, and only another list or request tells."""
        return things

    # -- what things look like ---------------------------------------------------------------------------------------

    def handle_of(self, thing: Wire) -> str:
        return str(thing["id"])

    def path_of(self, handle: str) -> str:
        # A user may name anything; a name must not lead to another path.
        return f"{self.path}/{quote(handle, safe='')}"

    def object_of(self, thing: Wire) -> Wire:
        """Return a thing with the fields of its kind, and all those of the service, which `show` has."""
        meant = self.token.hide(thing)
        renamed = {ours: meant[theirs] for ours, theirs in self.renamed.items() if theirs in meant}
        found = {**{name: value for name, value in meant.items() if name not in self.renamed}, **renamed}
        if isinstance(found.get("status"), str):
            word = found["status"].lower()
            found["status"] = self.statuses.get(word, word)
        return {**found, "id": self.handle_of(thing)}

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        """Return the fields that the service takes, of a specification or a part of it."""
        return {self.renamed.get(name, name): value for name, value in spec.items()}

    def _thing(self, answer: Wire) -> Wire:
        return dict(answer[self.key]) if self.key else answer

    def _wrapped(self, body: Wire) -> Wire:
        return {self.key: body} if self.key else body

    # -- acting ------------------------------------------------------------------------------------------------------

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        """Make a thing that carries a token.

        Raises:
            Terminal: The service refuses it.
            Transient: It was not made.
            Uncertain: It may have been made.
        """
        body = self.token.write(self.body_of(spec), token)
        return self._thing(self.api.request("POST", self.path, self._wrapped(body), of=token))

    def together(self, intents: Sequence[Creation]) -> Mapping[str, Wire | HomeostatError]:
        """Make several things with fewer requests than one for each, where the service can.

        Returns:
            Token -> thing or error; what is left out is made by itself.
        """
        return {}

    def afterwards(self, made: Wire, act: Callable[[], object]) -> Wire:
        """Carry out what a creation needs a second request for, and return the thing.

        The thing exists: if that fails, it differs from what was meant, which is then repaired, or told, like drift.
        """
        try:
            act()
        except HomeostatError as error:
            LOG.warning("%s %s is not as it was meant yet: %s", self.kind, self.handle_of(made), error)
            return {**made, UNFINISHED: True}
        return self.get(self.handle_of(made))

    def part_of(self, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        """Return the changed fields; those that are wanted no more get what a new thing has, or null."""
        return {name: self.cleared.get(name) if spec.get(name) is None else spec[name] for name in changed}

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        """Change a thing in place, and return it.

        Raises:
            Missing: It does not exist.
        """
        body = self.body_of(self.part_of(spec, changed))
        if not body:
            return self.get(handle)
        if self.token.field in body:
            token = self.token.read(self.get(handle))
            # What was adopted has none.
            body = self.keep_token(handle, body, token) if token else body
        return self._thing(self.api.request(self.update_method, self.path_of(handle), self._wrapped(body), of=handle))

    def keep_token(self, handle: str, body: Wire, token: str) -> Wire:
        """Return the body of a change, after which the thing still carries its token."""
        return self.token.write(body, token)

    def delete(self, handle: str) -> Wire | None:
        """Begin to delete a thing; return it where it may go on existing for a while, None where it is gone.

        Raises:
            Missing: It does not exist.
        """
        self.api.request("DELETE", self.path_of(handle), of=handle)
        return None

    def operations(self) -> Mapping[str, Callable[[str, Mapping[str, Any]], None]]:
        """Return operation -> what carries it out, for a handle and its arguments."""
        return {}

    def operate(self, handle: str, verb: str, arguments: Mapping[str, Any]) -> Wire:
        """Carry out an operation, and return the thing.

        Raises:
            Missing: It does not exist.
            Terminal: Things of this kind have no such operation.
        """
        act = self.operations().get(verb)
        if act is None:
            self.get(handle)
            raise Terminal(f"a {KINDS[self.kind].name} has no operation {verb}")
        act(handle, arguments)
        return self.get(handle)
