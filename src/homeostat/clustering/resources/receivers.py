"""Receivers of templates."""

from collections.abc import Sequence

from homeostat.clustering.resources.context import ResourceContext
from homeostat.clustering.resources.records import Fields, RecordWriter, Requester, ResourceRecord
from homeostat.clustering.resources.specs import PlainHandler
from homeostat.clustering.service.receivers import ReceiverService
from homeostat.clustering.wire import receivers, views
from homeostat.clustering.wire.bodies import read
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import ReceiverRow


class Receivers(PlainHandler[ReceiverService]):
    """Receivers of templates."""

    def __init__(self, context: ResourceContext) -> None:
        super().__init__(context, context.services.receivers)

    def look(self, tx: Transaction, project: str, rows: Sequence[ReceiverRow]) -> dict[str, Fields]:
        views_of_rows = (views.receiver(row, self._context.base, acts=True) for row in rows)
        return {view["id"]: {name: value for name, value in view.items() if name != "domain"} for view in views_of_rows}

    def make(self, by: Requester, spec: Fields, keep: RecordWriter) -> None:
        fields = read({name: spec[name] for name in receivers.NEW.keys() & spec.keys()}, receivers.NEW)
        params, actor = (fields.get(name, {}) for name in ("params", "actor"))
        scope, name, cluster = self._context.scope(by), fields["name"], fields["cluster_id"]

        def also(tx: Transaction, id: str) -> None:
            keep(tx, ResourceRecord(id))

        self._service.create(scope, name, cluster, fields["action"], params, actor, also)

    def change(self, by: Requester, id: str, spec: Fields, before: Fields, keep: RecordWriter) -> None:
        """Do nothing: no property of a receiver changes in place."""
