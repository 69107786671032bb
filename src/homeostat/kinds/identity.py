"""Identity: users, projects, roles and the catalogue."""

from homeostat.kinds.base import ANY, BOOLEAN, Kind, listing

KINDS = (
    Kind("domain", "A domain: a space of names for projects, users and groups."),
    Kind("project", "A project: the owner of things in a cloud.", reported={"is_domain": BOOLEAN}),
    Kind("user", "A user.", reported={"password_expires_at": ANY}, notes=("Its password is never returned.",)),
    Kind("group", "A group of users."),
    Kind("role", "A role: a name for what its holders may do."),
    Kind("role_assignment", "Roles of a user.", extra_mutable={"roles": listing("[{role, project_id or domain_id}]")}),
    Kind("service", "A service in the catalogue."),
    Kind("region", "A region in the catalogue.", id_field="id"),
    Kind("endpoint", "A URL of a service in the catalogue."),
)
