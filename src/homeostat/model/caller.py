"""The caller of a request, once authenticated."""

from dataclasses import dataclass, field

from homeostat.model.errors import Rejected

STACK_USER = "heat_stack_user"
"""Role of the users that the service creates for servers and handles."""
PEOPLE = frozenset({"admin", "member", "reader"})
"""Roles that stack users never have."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The authenticated caller of a request.

    Attributes:
        user: Name; None in access mode `none`.
        project: The only project the caller may act in, unless an admin.
        user_id: As in the identity service; None without an identity service.
        domain: Id of the user's domain; None without an identity service.
        roles: In the project, or in the whole cloud if `of_system`.
        of_system: The token is scoped to the system, not to a project.
        of_admin_project: False if the identity service reports another project as the admin project, or there is no
            project.
        is_admin: Admin of the whole cloud, by the policy's rule `context_is_admin`.
        token: Token that the caller sent.
        trust: Id of the trust behind the token, if any.
        only_here: The caller has a handle's token, which permits this single request only.
    """

    user: str | None = None
    project: str | None = None
    user_id: str | None = None
    domain: str | None = None
    roles: frozenset[str] = frozenset()
    of_system: bool = False
    of_admin_project: bool = True
    is_admin: bool = False
    token: str | None = field(default=None, repr=False)
    trust: str | None = None
    only_here: bool = False

    @property
    def is_anybody(self) -> bool:
        """Whether callers are not authenticated at all (access mode `none`): every request is allowed."""
        return self.project is None and self.user is None and self.user_id is None

    @property
    def key(self) -> str | None:
        """The user's identity: the id, else the name, else None."""
        return self.user_id or self.user

    @property
    def is_stack_user(self) -> bool:
        """Whether the caller is a user created for a server or handle, with access to this resource only."""
        return STACK_USER in self.roles and not self.roles & PEOPLE and not self.only_here

    def check_project(self, project: str) -> None:
        """Raise Rejected (InvalidTenant) for another project, unless the caller is an admin."""
        if self.project != project and not self.is_admin and not self.is_anybody:
            message = f"The project {project} is not yours; use {self.project} in the endpoint instead."
            raise Rejected("InvalidTenant", message)
