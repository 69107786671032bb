"""Identity: users, projects, roles and the catalogue."""

from homeostat.kinds.base import ANY, BOOLEAN, LIST, TEXT, Kind, listing

DOMAIN = Kind(
    name="domain",
    description="A domain: a space of names for projects, users and groups.",
    mutable={
        "name": TEXT,
        "enabled": BOOLEAN,
        "description": TEXT,
    },
)
PROJECT = Kind(
    name="project",
    description="A project: the owner of things in a cloud.",
    fixed={
        "parent_id": TEXT,
    },
    mutable={
        "name": TEXT,
        "domain_id": TEXT,
        "description": TEXT,
        "enabled": BOOLEAN,
        "tags": LIST,
    },
    reported={
        "is_domain": BOOLEAN,
    },
)
USER = Kind(
    name="user",
    description="A user.",
    mutable={
        "name": TEXT,
        "domain_id": TEXT,
        "description": TEXT,
        "enabled": BOOLEAN,
        "email": TEXT,
        "password": TEXT,
        "default_project_id": TEXT,
        "groups": LIST,
        "roles": LIST,
    },
    reported={
        "password_expires_at": ANY,
    },
    notes=("Its password is never returned.",),
)
GROUP = Kind(
    name="group",
    description="A group of users.",
    mutable={
        "name": TEXT,
        "domain_id": TEXT,
        "description": TEXT,
        "roles": LIST,
    },
)
ROLE = Kind(
    name="role",
    description="A role: a name for what its holders may do.",
    fixed={
        "domain_id": TEXT,
    },
    mutable={
        "name": TEXT,
    },
)
ROLE_ASSIGNMENT = Kind(
    name="role_assignment",
    description="Roles of a user.",
    mutable={
        "user_id": TEXT,
        "roles": listing("[{role, project_id or domain_id}]"),
        "group_id": TEXT,
    },
)
SERVICE = Kind(
    name="service",
    description="A service in the catalogue.",
    mutable={
        "name": TEXT,
        "type": TEXT,
        "enabled": BOOLEAN,
        "description": TEXT,
    },
)
REGION = Kind(
    name="region",
    description="A region in the catalogue.",
    fixed={
        "id": TEXT,
    },
    mutable={
        "enabled": BOOLEAN,
        "parent_region_id": TEXT,
        "description": TEXT,
    },
    id_field="id",
)
ENDPOINT = Kind(
    name="endpoint",
    description="A URL of a service in the catalogue.",
    mutable={
        "name": TEXT,
        "service_id": TEXT,
        "interface": TEXT,
        "url": TEXT,
        "enabled": BOOLEAN,
        "region_id": TEXT,
    },
)

KINDS = (
    DOMAIN,
    PROJECT,
    USER,
    GROUP,
    ROLE,
    ROLE_ASSIGNMENT,
    SERVICE,
    REGION,
    ENDPOINT,
)
