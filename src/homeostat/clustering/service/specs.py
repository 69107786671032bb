"""Profiles and policies: named specs, which are checked before they are stored and never change afterwards."""

import uuid
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from sqlalchemy import delete, exists, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from homeostat.clustering.decisions.specs import Spec
from homeostat.clustering.service.requester import InTransaction, RequestScope, no_op
from homeostat.clustering.store import listing, living
from homeostat.model.errors import Rejected
from homeostat.model.limits import POLICIES, PROFILES, SPECS_MAX
from homeostat.store import schema
from homeostat.store.database import Database, Transaction
from homeostat.store.schema import json_size
from homeostat.store.schema.rows import PolicyRow, ProfileRow
from homeostat.store.sql import sizes, typed

Check = Callable[[str, Any, str], Spec]
"""Check the spec of an entry with this name, in this project; raise Rejected."""


R = TypeVar("R", ProfileRow, PolicyRow)


class SpecService(Generic[R]):
    """Stores profiles or policies.

    Args:
        kind: The class of the rows.
        check: Checks a spec, also against the clouds.
        used_by: Columns of other tables that refer to the specs.
        in_use: Why a spec in use cannot be deleted, for error messages.
    """

    def __init__(
        self,
        db: Database,
        kind: type[R],
        check: Check,
        used_by: tuple[Any, ...],
        in_use: str,
    ) -> None:
        self._db = db
        self._kind: type[R] = kind
        self._table = listing.TABLES[kind]
        self._check = check
        self._used_by = used_by
        self._in_use = in_use

    @property
    def word(self) -> str:
        """The noun for messages: `profile` or `policy`."""
        return self._table.name

    def create(self, scope: RequestScope, name: str, spec: Any, also: InTransaction = no_op, **columns: Any) -> R:
        """Store a spec, and return its row.

        Args:
            spec: From the user, unchecked.
            also: Further writes in the same transaction.
            columns: Further columns.

        Raises:
            Rejected: InvalidSpec, ESchema or ResourceNotFound; OverQuota.
            Transient: A cloud does not answer.
        """
        checked = self.checked(scope, name, spec)
        with self._db.write() as tx:
            identity = self.add(tx, scope, name, checked, **columns)
            also(tx, identity)
            return self._row(tx, identity)

    def checked(self, scope: RequestScope, name: str, spec: Any) -> Spec:
        """Check a spec. Raises as `create` does, except for quotas."""
        return self._check(name, spec, scope.project)

    def add(self, tx: Transaction, scope: RequestScope, name: str, checked: Spec, **columns: Any) -> str:
        """Store a checked spec, and return its id.

        Raises:
            Rejected: OverQuota.
        """
        count = select(func.count()).where(self._table.c.project == scope.project)
        if tx.execute(count).scalar_one() >= SPECS_MAX and not scope.caller.is_admin:
            message = f"Quota exceeded: a project has at most {SPECS_MAX} of {self.word}: delete some first"
            raise Rejected("OverQuota", message)
        cells = {"spec": checked.sent, **columns}
        size = json_size(cells)
        self._check_room(tx, scope, size)
        identity = str(uuid.uuid4())
        values = {
            "id": identity,
            **scope.owner,
            "name": name,
            "type": checked.full_name,
            **cells,
            "size": size,
        }
        tx.execute(insert(self._table).values(**values, created_at=tx.now()))
        return identity

    def _check_room(self, tx: Transaction, scope: RequestScope, added: int, instead: int = 0) -> None:
        """Check that a project may add so many bytes, after `instead` bytes are freed. Raise Rejected."""
        columns = tuple(self._table.c[name] for name in WEIGHED if name in self._table.c)
        size = sizes.stored(tx, self._table.c.size, columns, self._table.c.project == scope.project)
        (POLICIES if self._table is schema.policy else PROFILES).check(0, size - instead, added, 0)

    def get(self, tx: Transaction, scope: RequestScope, identity: str) -> R:
        """Return a row by its id, name or the beginning of its id.

        Raises:
            Rejected: ResourceNotFound, MultipleChoices.
        """
        row: R = listing.get(tx, self._kind, scope.reach, identity)
        return row

    def page(self, tx: Transaction, wanted: listing.Page) -> list[R]:
        return listing.page(tx, self._kind, wanted)

    def update(self, scope: RequestScope, identity: str, changes: Mapping[str, Any]) -> R:
        """Change the name, or other columns, and return the row.

        Raises:
            Rejected: ResourceNotFound; BadRequest: nothing to change.
        """
        with self._db.write() as tx:
            row = self.get(tx, scope, identity)
            changed = {name: value for name, value in changes.items() if getattr(row, name) != value}
            if not changed:
                raise Rejected("BadRequest", "No property needs an update.")
            replaced = {name: getattr(row, name) for name in changed}
            self._check_room(tx, scope, json_size(changed), json_size(replaced))
            chosen = update(self._table).where(self._table.c.id == row.id)
            whole = {name: changed.get(name, getattr(row, name)) for name in WEIGHED if name in self._table.c}
            tx.execute(chosen.values(**changed, size=json_size(whole), updated_at=tx.now()))
            return self._row(tx, row.id)

    def delete(self, scope: RequestScope, identity: str, also: InTransaction = no_op) -> None:
        """Delete an unused profile or policy, with the writes of `also` in the same transaction.

        Raises:
            Rejected: ResourceNotFound, ResourceInUse.
        """
        with self._db.write() as tx:
            row = self.get(tx, scope, identity)
            # Rows of deleted clusters and nodes would count as users of the profile until they are removed.
            living.forget_gone(tx, row.project)
            used = any(tx.execute(select(exists().where(column == row.id))).scalar_one() for column in self._used_by)
            named = row.id if self._table is schema.profile else identity
            message = f"The {self.word} '{named}' cannot be deleted: {self._in_use}."
            if used:
                raise Rejected("ResourceInUse", message)
            try:
                tx.execute(delete(self._table).where(self._table.c.id == row.id))
            except IntegrityError as error:  # another request was faster
                raise Rejected("ResourceInUse", message) from error
            also(tx, row.id)

    def _row(self, tx: Transaction, identity: str) -> R:
        row: R = typed.rows(self._kind, tx.execute(select(self._table).where(self._table.c.id == identity))).one()
        return row


WEIGHED = ("spec", "metadata")
"""Columns whose cells may be large."""


def profiles(db: Database, check: Check) -> SpecService[ProfileRow]:
    """Return the service for profiles."""
    used = (schema.cluster.c.profile_id, schema.node.c.profile_id)
    return SpecService(db, ProfileRow, check, used, "still referenced by some clusters and/or nodes")


def policies(db: Database, check: Check) -> SpecService[PolicyRow]:
    """Return the service for policies."""
    return SpecService(db, PolicyRow, check, (schema.cluster_policy.c.policy_id,), "still attached to some clusters")
