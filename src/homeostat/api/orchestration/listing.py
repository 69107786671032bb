"""Query parameters of the stack list, translated for the store."""

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import BaseModel, Field

from homeostat.api.http.inputs import COUNT_MAX, Flag, flag
from homeostat.api.orchestration.bodies import minutes
from homeostat.model.errors import Rejected
from homeostat.services.tags import check_tags
from homeostat.store.stacks.views import Listing, Tags

SORTABLE = {
    "stack_name": "name",
    "stack_status": "status",
    "creation_time": "created_at",
    "updated_time": "updated_at",
}
"""Sort key of the API -> column."""
COLUMNS = {
    "id": "id",
    "name": "name",
    "stack_name": "name",
    "action": "action",
    "stack_action": "action",
    "stack_status_reason": "reason",
    "tenant": "project",
    "stack_user_project_id": "project",
    "username": "owner",
    "stack_owner": "owner",
    "owner_id": "parent_id",
    "parent": "parent_id",
}
"""Filter of the API -> column."""


class StackQuery(BaseModel):
    """Filters of the stack list. A filter may be repeated; a stack matches if it has one of the values."""

    limit: int | None = Field(None, ge=0, le=COUNT_MAX, description="Length of a page; 0 for all.")
    marker: str | None = Field(None, description="Id of the last stack of the page before.")
    sort_keys: list[str] = Field([], description=f"Any of {', '.join(SORTABLE)}; other keys are ignored.")
    sort_dir: str | None = Field(None, pattern="^(asc|desc)$")
    show_deleted: Flag = Field(False)
    show_nested: Flag = Field(False)
    show_hidden: Flag = Field(False)
    global_tenant: Flag = Field(
        False, description="List the stacks of all projects; needs the rule stacks:global_index."
    )
    with_count: Flag = Field(False, description="Include the number of stacks on all pages.")
    tags: str | None = Field(None, description="Separated by commas: with all of these.")
    tags_any: str | None = Field(None, description="With one of these.")
    not_tags: str | None = Field(None, description="Without all of these together.")
    not_tags_any: str | None = Field(None, description="Without any of these.")
    status: list[str] = Field([], description="COMPLETE, or joined with the action: CREATE_COMPLETE.")
    stack_status: list[str] = []
    id: list[str] = []
    name: list[str] = []
    stack_name: list[str] = []
    action: list[str] = []
    stack_action: list[str] = []
    stack_status_reason: list[str] = []
    tenant: list[str] = []
    stack_user_project_id: list[str] = []
    username: list[str] = []
    stack_owner: list[str] = []
    owner_id: list[str] = []
    parent: list[str] = []
    disable_rollback: list[str] = []
    timeout_mins: list[str] = []

    def listing(self, project: str | None, hidden_tags: Sequence[str]) -> Listing:
        """Translate the query for the store.

        Args:
            project: None for all projects.

        Raises:
            Rejected: Names the invalid parameter.
        """
        order = [SORTABLE[key] for key in self.sort_keys if key in SORTABLE]
        descending = self.sort_dir == "desc" if self.sort_dir or order else True
        return Listing(
            project,
            only=self._only(),
            tags=Tags(*(_tags(self, name) for name in ("tags", "tags_any", "not_tags", "not_tags_any"))),
            hidden_tags=() if self.show_hidden else hidden_tags,
            deleted=self.show_deleted,
            nested=self.show_nested,
            order=order or ("created_at",),
            newest_first=descending,
            marker=self.marker,
            limit=self.limit or None,
        )

    def _only(self) -> dict[str, list[Any]]:
        only: dict[str, list[Any]] = {}

        def narrow(column: str, values: Sequence[Any]) -> None:
            only[column] = [value for value in values if column not in only or value in only[column]]

        for name, column in COLUMNS.items():
            if getattr(self, name):
                narrow(column, getattr(self, name))
        for column, values in _states([*self.status, *self.stack_status]).items():
            narrow(column, values)
        if self.disable_rollback:
            narrow("disable_rollback", _converted("disable_rollback", self.disable_rollback, flag))
        if self.timeout_mins:
            narrow("timeout_mins", _converted("timeout_mins", self.timeout_mins, minutes))
        return only


def _states(value: Sequence[str]) -> dict[str, list[str]]:
    """Split states: `CREATE_FAILED` filters by action and status, `FAILED` by status only."""
    filters: dict[str, list[str]] = {}
    for state in value:
        action, underscore, status = state.partition("_")
        if not underscore or state == "IN_PROGRESS":
            filters.setdefault("status", []).append(state)
            continue
        filters.setdefault("action", []).append(action)
        filters.setdefault("status", []).append(status)
    return filters


def _converted(name: str, values: Sequence[str], read: Callable[[str], Any]) -> list[Any]:
    try:
        return [read(value) for value in values]
    except ValueError as error:
        raise Rejected("HTTPBadRequest", f"{name}: {error}") from error


def _tags(query: StackQuery, name: str) -> list[str]:
    value = getattr(query, name)
    try:
        return check_tags([tag for tag in value.split(",") if tag]) if value else []
    except ValueError as error:
        raise Rejected("HTTPBadRequest", f"{name}: {error}") from error
