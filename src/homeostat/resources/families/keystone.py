"""Types of the identity service: domains, projects, users, groups and their roles, and the catalogue."""

from typing import Any

from homeostat.resources import comparison
from homeostat.resources.base import Props, ResourceType, payload
from homeostat.resources.rules import conflict, is_set, maps, missing
from homeostat.resources.schema import (
    Attribute,
    Property,
    ValueType,
    boolean,
    custom,
    link,
    listing,
    mapping,
    one_of,
    text,
)
from homeostat.resources.support import Support


def _domain(description: str, **options: Any) -> Property:
    """Return a property that refers to a domain by name or id.

    Not compared with the observed value: `default` is the id of one domain, and may be the name of another.
    """
    return link(description, "keystone.domain", default="default", drift=False, **options)


def _name(of_what: str) -> Property:
    return text(f"Name of the {of_what}.", update=True)


def _enabled(of_what: str) -> Property:
    return boolean(f"The {of_what} may be used.", default=True, update=True)


class RolesType(ResourceType):
    """Base of the types that grant roles."""

    roles = {
        "roles": listing(
            "Roles, each in a project or a domain.",
            update=True,
            same=comparison.grants,
            items=mapping(
                fields={
                    "role": link("The role.", "keystone.role", required=True),
                    "project": link("Project in which it is given.", "keystone.project"),
                    "domain": link("Domain in which it is given.", "keystone.domain"),
                }
            ),
        )
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        for index, role in maps(values, "roles"):
            place = (*path, "roles", index)
            if is_set(role, "project") and is_set(role, "domain"):
                raise conflict(place, "project", "domain")
            if not (is_set(role, "project") or is_set(role, "domain")):
                raise missing(place, "project", "domain")

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        spec = super().spec(values, physical_name)
        if spec.get("roles"):
            spec["roles"] = payload(spec["roles"], project="project_id", domain="domain_id")
        return spec


class Domain(ResourceType):
    name = "OS::Keystone::Domain"
    kind = "domain"
    support = Support(version="8.0.0")
    description = "A domain: a space of names for projects, users and groups."
    properties = {
        "name": _name("domain"),
        "description": text("Description of the domain.", update=True),
        "enabled": _enabled("domain"),
    }


class Project(ResourceType):
    name = "OS::Keystone::Project"
    kind = "project"
    support = Support(version="2015.1")
    description = "A project: the owner of things in a cloud."
    properties = {
        "name": _name("project"),
        "domain": _domain("Domain it belongs to.", update=True),
        "description": text("Description of the project.", default="", update=True),
        "enabled": _enabled("project"),
        "parent": link("Project above it.", "keystone.project"),
        "tags": listing("Tags.", default=[], update=True, same=comparison.includes),
    }
    attributes = {
        "name": Attribute("Name of the project."),
        "parent_id": Attribute("Project above it."),
        "domain_id": Attribute("Domain it belongs to."),
        "enabled": Attribute("Whether it may be used.", ValueType.BOOLEAN),
        "is_domain": Attribute("Whether it is a domain, too.", ValueType.BOOLEAN),
    }
    renamed = {"domain": "domain_id", "parent": "parent_id"}


class User(RolesType):
    name = "OS::Keystone::User"
    kind = "user"
    support = Support(version="2015.1")
    description = "A user."
    properties = {
        "name": _name("user"),
        "domain": _domain("Domain it belongs to.", update=True),
        "description": text("Description of the user.", default="", update=True),
        "enabled": _enabled("user"),
        "email": text("Address for mail.", update=True, blank=True),
        "password": text("Password.", update=True, drift=False),
        "default_project": link("Project it works in unless it asks for another.", "keystone.project", update=True),
        "groups": listing(
            "Groups it belongs to.",
            update=True,
            same=comparison.references,
            items=text(constraints=(custom("keystone.group"),)),
        ),
        **RolesType.roles,
    }
    attributes = {
        "name": Attribute("Name of the user."),
        "default_project_id": Attribute("Project it works in unless it asks for another."),
        "domain_id": Attribute("Domain it belongs to."),
        "enabled": Attribute("Whether it may be used.", ValueType.BOOLEAN),
        "password_expires_at": Attribute("When its password expires."),
    }
    renamed = {"domain": "domain_id", "default_project": "default_project_id"}


class Group(RolesType):
    name = "OS::Keystone::Group"
    kind = "group"
    support = Support(version="2015.1")
    description = "A group of users."
    properties = {
        "name": _name("group"),
        "domain": _domain("Domain it belongs to.", update=True),
        "description": text("Description of the group.", default="", update=True),
        **RolesType.roles,
    }
    renamed = {"domain": "domain_id"}


class Role(ResourceType):
    name = "OS::Keystone::Role"
    kind = "role"
    support = Support(version="2015.1")
    description = "A role: a name for what its holders may do."
    properties = {
        "name": _name("role"),
        "domain": _domain("Domain it belongs to."),
    }
    renamed = {"domain": "domain_id"}


class UserRoleAssignment(RolesType):
    name = "OS::Keystone::UserRoleAssignment"
    kind = "role_assignment"
    support = Support(version="5.0.0")
    description = "Roles of a user."
    properties = {
        "user": link("The user.", "keystone.user", required=True, update=True),
        **RolesType.roles,
    }
    renamed = {"user": "user_id"}


class GroupRoleAssignment(RolesType):
    name = "OS::Keystone::GroupRoleAssignment"
    kind = "role_assignment"
    support = Support(version="5.0.0")
    description = "Roles of the users in a group."
    properties = {
        "group": link("The group.", "keystone.group", required=True, update=True),
        **RolesType.roles,
    }
    renamed = {"group": "group_id"}


class Service(ResourceType):
    name = "OS::Keystone::Service"
    kind = "service"
    support = Support(version="5.0.0")
    description = "A service in the catalogue."
    properties = {
        "name": _name("service"),
        "description": text("Description of the service.", update=True),
        "type": text("Type of the service, such as compute.", required=True, update=True),
        "enabled": _enabled("service"),
    }


class Region(ResourceType):
    name = "OS::Keystone::Region"
    kind = "region"
    support = Support(version="6.0.0")
    description = "A region in the catalogue."
    properties = {
        "id": text("Id of the region."),
        "parent_region": link("Region it is part of.", "keystone.region", update=True),
        "description": text("Description of the region.", update=True),
        "enabled": _enabled("region"),
    }
    renamed = {"parent_region": "parent_region_id"}


class Endpoint(ResourceType):
    name = "OS::Keystone::Endpoint"
    kind = "endpoint"
    support = Support(version="5.0.0")
    description = "A URL of a service in the catalogue."
    properties = {
        "name": _name("endpoint"),
        "region": link("Region it is in.", "keystone.region", update=True),
        "service": link("The service.", "keystone.service", required=True, update=True),
        "interface": text(
            "Who it is for.", required=True, update=True, constraints=(one_of("public", "internal", "admin"),)
        ),
        "url": text("The URL.", required=True, update=True),
        "enabled": _enabled("endpoint"),
    }
    renamed = {"region": "region_id", "service": "service_id"}


TYPES: list[type[ResourceType]] = [
    *(Domain, Project, User, Group, Role, UserRoleAssignment, GroupRoleAssignment, Service, Region, Endpoint),
]
