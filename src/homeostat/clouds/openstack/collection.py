"""Base class of the collections of OpenStack's services: one kind of object, with the requests that manage it.

Most collections of OpenStack are alike, so a kind is a class with a few facts: its path, the keys of its bodies, the
place of its token. Methods are overridden only for peculiarities of a service.
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
from homeostat.model.errors import HomeostatError, Rejected, Terminal, ambiguous
from homeostat.resources.kind_fields import links_of

LOG = logging.getLogger(__name__)
UNFINISHED = "_unfinished"
"""Field of an object whose creation lacks a later request, see `finish_creation`."""
FEW = 3
"""Up to this many objects are read individually; more are looked up in the list."""


T = TypeVar("T")
U = TypeVar("U")


class CloudOfCollections(Protocol):
    """The part of a cloud that its collections use.

    Attributes:
        service: Type of a service -> its client for the project.
        server_changes: Servers that were changed lately.
    """

    service: Callable[[str], Service]
    server_changes: ServerChanges

    @property
    def collections(self) -> Mapping[str, "Collection"]:
        """Kind -> its collection."""

    def side_by_side(self, act: Callable[[T], U], items: Sequence[T]) -> list[U]:
        """Return the results of an action for all items, in order; several run concurrently."""

    def known(self, kind: str, name: str, resolve: Callable[[], str | None]) -> str | None:
        """Return the id of a name, from the cache if it was resolved lately."""


class Collection:
    """The objects of one kind, as one project sees them.

    Attributes:
        kind: Kind of the port.
        service: Type of the service in the catalogue.
        path: Path of the collection.
        key: Key of an object in a body; "" if the body is the object itself.
        keys: Key of the list.
        token: Place of the token.
        update_method: HTTP method of updates.
        renamed: Field of the kind -> field of the service, where they differ.
        statuses: Value of the service's `status`, in lower case -> value of the kind, where they differ.
        names: Field with the name that users choose.
        filtered_by_name: Whether any user can filter the list by name, or the service ignores such a filter.
        detail: Path of the list with all fields, below `path`.
        links: Field -> kind of the objects that it names, for fields without a constraint that says it; "" for none.
        cleared: Field -> its value once a specification drops it, for fields that the service does not let be null.
        further_looks: In words, the requests that reading many objects at rest costs beyond a list of all; "" if their
            number is fixed.
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
    links: ClassVar[Mapping[str, str]] = {}
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
        """Yield all objects of the project that match the filters.

        Raises:
            Transient: The service does not answer.
        """
        return self.api.list(self.path + self.detail, self.keys, **filters)

    def get(self, handle: str) -> Wire:
        """Return an object.

        Raises:
            Missing: The object does not exist.
            Transient: The service does not answer.
        """
        return self._thing(self.api.get(self.path_of(handle)))

    def observe(self, handles: Sequence[str]) -> dict[str, Wire]:
        """Return handle -> object, for the existing ones.

        Few objects are read individually, more with one list. Objects that the list lacks are read individually, since
        only a 404 for the object itself proves its absence.
        """
        wanted = set(handles)
        if len(wanted) <= FEW:
            return self._read(wanted)
        things: dict[str, Wire] = {}
        for thing in self.candidates(wanted):
            handle = self.handle_of(thing)
            if handle in wanted:
                things[handle] = thing
        return things | self._read(wanted - things.keys())

    def candidates(self, handles: set[str]) -> Iterator[Wire]:
        """Yield a superset of the existing objects with these handles."""
        return self.list()

    def _read(self, handles: set[str]) -> dict[str, Wire]:
        def look(handle: str) -> Wire | None:
            try:
                return self.get(handle)
            except Missing:
                return None

        looks = zip(sorted(handles), self.cloud.side_by_side(look, sorted(handles)), strict=True)
        return {handle: thing for handle, thing in looks if thing is not None}

    def find(self, tokens: Sequence[str]) -> dict[str, Wire]:
        """Return token -> object with this token, for the existing ones.

        Raises:
            Transient: The service does not answer.
        """
        if isinstance(self.token, Joined):
            return {}
        if isinstance(self.token, AsId):
            by_id = {self.token.id_of(token): token for token in tokens}
            return {by_id[handle]: thing for handle, thing in self._read(set(by_id)).items()}
        wanted, things = set(tokens), dict[str, Wire]()
        for query in self.token.filters(sorted(wanted)):
            for thing in self.list(**query):
                token = self.token.read(thing)
                if token in wanted:
                    things[token] = thing
        return things

    def resolve(self, name: str) -> str | None:
        """Return the handle of the object with this name or id; None if absent.

        Raises:
            Rejected: Several objects have the name.
            Transient: The service does not answer.
        """
        try:
            return self.handle_of(self.get(name))
        except Missing:
            pass
        except Terminal as error:  # some services answer 400 to an id of the wrong format, such as a name
            LOG.info("%s cannot be looked up by id, so the list is searched: %s", self.kind, error)
        named = [thing for thing in self._maybe_named(name) if self.token.hide(thing).get(self.names) == name]
        if len(named) > 1:
            raise ambiguous(name)
        return self.handle_of(named[0]) if named else None

    def _maybe_named(self, name: str) -> Sequence[Wire]:
        """Return a superset of the objects with this name.

        Not every service can filter by name: some ignore the filter, some refuse the request, and some let only
        administrators use it.
        """
        if self.filtered_by_name and self.token.field != self.names:
            try:
                return [*self.list(**{self.names: name})]
            except Terminal as error:
                LOG.info("%s cannot be looked up by name, so the list is searched: %s", self.kind, error)
        return [*self.list()]

    def id_of(self, name: Any) -> Any:
        """Return the id of an object named by a specification; an empty value unchanged.

        Raises:
            Terminal: The object does not exist, or the name is ambiguous.
        """
        if not name:
            return name
        try:
            handle = self.cloud.known(self.kind, str(name), lambda: self.resolve(str(name)))
        except Rejected as error:
            raise Terminal(str(error)) from error
        if handle is None:
            raise Terminal(f"there is no {self.kind.replace('_', ' ')} with the name or id {name}")
        return handle

    def reference(self, kind: str, name: Any) -> Any:
        """Return the id of an object of another kind; the name itself if this cloud lacks the kind.

        Raises:
            Terminal: The object does not exist, or the name is ambiguous.
        """
        named = self.cloud.collections.get(kind)
        return named.id_of(name) if named is not None else name

    def with_ids(self, fields: Mapping[str, Any]) -> Wire:
        """Return fields of the kind, with the ids of other objects in place of their names.

        Raises:
            Terminal: An object does not exist, or its name is ambiguous.
        """
        links = {**links_of(self.kind), **self.links}
        return {name: self._id_in(links[name], value) if name in links else value for name, value in fields.items()}

    def _id_in(self, kind: str, value: Any) -> Any:
        if isinstance(value, list):
            return [self.reference(kind, name) for name in value]
        return self.reference(kind, value)

    def complete(self, things: Mapping[str, Wire]) -> Mapping[str, Wire]:
        """Add the fields that need another list or request, and that `observe` leaves out for its speed."""
        return things

    # -- representation ---------------------------------------------------------------------------------------------

    def handle_of(self, thing: Wire) -> str:
        return str(thing["id"])

    def path_of(self, handle: str) -> str:
        # A user may choose any name, even one with slashes: keep it within this path.
        return f"{self.path}/{quote(handle, safe='')}"

    def object_of(self, thing: Wire) -> Wire:
        """Return an object with the fields of its kind, and all fields of the service for `show`."""
        meant = self.token.hide(thing)
        renamed = {ours: meant[theirs] for ours, theirs in self.renamed.items() if theirs in meant}
        fields = {**{name: value for name, value in meant.items() if name not in self.renamed}, **renamed}
        if isinstance(fields.get("status"), str):
            word = fields["status"].lower()
            fields["status"] = self.statuses.get(word, word)
        return {**fields, "id": self.handle_of(thing)}

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        """Translate the fields of a specification, or of a part, into the fields of the service."""
        return {self.renamed.get(name, name): value for name, value in spec.items()}

    def _thing(self, answer: Wire) -> Wire:
        return dict(answer[self.key]) if self.key else answer

    def _wrapped(self, body: Wire) -> Wire:
        return {self.key: body} if self.key else body

    # -- acting ------------------------------------------------------------------------------------------------------

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        """Create an object that carries a token.

        Raises:
            Terminal: The service refuses the request.
            Transient: Nothing was created.
            Uncertain: The object may have been created.
        """
        body = self.token.write(self.body_of(spec), token)
        return self._thing(self.api.request("POST", self.path, self._wrapped(body), of=token))

    def create_many(self, intents: Sequence[Creation]) -> Mapping[str, Wire | HomeostatError]:
        """Create several objects with fewer requests than objects, if the service supports this.

        Returns:
            Token -> object or error. Missing tokens are created individually.
        """
        return {}

    def finish_creation(self, thing: Wire, act: Callable[[], object]) -> Wire:
        """Carry out the second request of a creation, and return the object.

        If the request fails, the object exists but differs from its specification: like other drift, the difference is
        then repaired or reported.
        """
        try:
            act()
        except HomeostatError as error:
            LOG.warning("%s %s is not as it was meant yet: %s", self.kind, self.handle_of(thing), error)
            return {**thing, UNFINISHED: True}
        return self.get(self.handle_of(thing))

    def part_of(self, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        """Return the changed fields; dropped fields are reset to the value of a new object, or null."""
        return {name: self.cleared.get(name) if spec.get(name) is None else spec[name] for name in changed}

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        """Change an object in place, and return it.

        Raises:
            Missing: The object does not exist.
        """
        body = self.body_of(self.part_of(spec, changed))
        if not body:
            return self.get(handle)
        if self.token.field in body:
            token = self.token.read(self.get(handle))
            # Adopted objects have no token.
            body = self.keep_token(handle, body, token) if token else body
        return self._thing(self.api.request(self.update_method, self.path_of(handle), self._wrapped(body), of=handle))

    def keep_token(self, handle: str, body: Wire, token: str) -> Wire:
        """Return the body of an update so that the object keeps its token."""
        return self.token.write(body, token)

    def delete(self, handle: str) -> Wire | None:
        """Start the deletion of an object; return the object if the deletion may take time, None if it is done.

        Raises:
            Missing: The object does not exist.
        """
        self.api.request("DELETE", self.path_of(handle), of=handle)
        return None

    def operations(self) -> Mapping[str, Callable[[str, Mapping[str, Any]], None]]:
        """Return operation -> function that carries it out, given a handle and arguments."""
        return {}

    def operate(self, handle: str, verb: str, arguments: Mapping[str, Any]) -> Wire:
        """Carry out an operation, and return the object.

        Raises:
            Missing: The object does not exist.
            Terminal: Objects of this kind lack the operation.
        """
        act = self.operations().get(verb)
        if act is None:
            self.get(handle)
            raise Terminal(f"a {self.kind} has no operation {verb}")
        act(handle, arguments)
        return self.get(handle)
