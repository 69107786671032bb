"""Identity with a real Keystone: administrators make things, and members learn what they lack."""

import contextlib
import uuid
from collections.abc import Callable, Iterator

import pytest

from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.port import Change, Creation
from homeostat.model.errors import Terminal, Transient
from homeostat.model.observed import Observation
from tests.openstack import lives
from tests.openstack.lives import Life, accepted, check_life, check_lost, check_never, make, remove
from tests.openstack.projects import Project

NEVER = uuid.UUID(int=5).hex


@pytest.fixture(scope="module")
def cloud(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStackCloud]:
    """As the administrator sees it."""
    with lives.adapter(project, tmp_path_factory.mktemp("admin"), "admin") as found:
        yield found


@pytest.fixture(scope="module")
def member(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStackCloud]:
    with lives.adapter(project, tmp_path_factory.mktemp("member")) as found:
        yield found


@pytest.fixture(scope="module")
def names(cloud: OpenStackCloud) -> Iterator[dict[str, str]]:
    """Kind -> name of a thing that others name."""
    found: dict[str, str] = {}
    with contextlib.ExitStack() as made:
        for type in ("Domain", "Project", "Group", "User", "Service", "Region"):
            name, kind = f"test-{uuid.uuid4().hex[:8]}", type.lower()
            properties = {"Service": {"type": f"x-{name}"}, "Region": {"id": name}}.get(type, {})
            handle = make(
                cloud, f"OS::Keystone::{type}", {"name": name, **properties} if type != "Region" else properties
            )
            made.callback(remove, cloud, kind, handle)
            found[kind] = name
        yield found


Names = dict[str, str]
LIVES: dict[str, Callable[[Names], Life]] = {
    "domain": lambda names: Life(
        "OS::Keystone::Domain", {"description": "d"}, ({"description": "e"}, {"enabled": False}), NEVER
    ),
    "project": lambda names: Life(
        "OS::Keystone::Project",
        {"description": "d", "parent": names["project"], "tags": ["a", "b"]},
        ({"description": "e"}, {"enabled": False, "tags": ["b", "c"]}),
        NEVER,
    ),
    "user": lambda names: Life(
        "OS::Keystone::User",
        {
            "description": "d",
            "email": "a@example.org",
            "password": "secret",
            "default_project": names["project"],
            "groups": [names["group"]],
            "roles": [{"role": "member", "project": names["project"]}, {"role": "reader", "domain": "default"}],
        },
        (
            {"description": "e", "email": "b@example.org", "password": "other"},
            {"groups": [], "roles": [{"role": "reader", "project": names["project"]}]},
            {"enabled": False},
        ),
        NEVER,
    ),
    "group": lambda names: Life(
        "OS::Keystone::Group",
        {"description": "d", "domain": names["domain"]},
        ({"description": "e", "roles": [{"role": "member", "project": names["project"]}]}, {"roles": []}),
        NEVER,
    ),
    "role": lambda names: Life("OS::Keystone::Role", {}, ({"name": f"role-{names['domain']}"},), NEVER),
    "service": lambda names: Life(
        "OS::Keystone::Service",
        {"type": f"y-{names['service']}", "description": "d"},
        ({"type": f"z-{names['service']}", "description": "e"}, {"enabled": False}),
        NEVER,
    ),
    "region": lambda names: Life(
        "OS::Keystone::Region",
        {"id": f"r-{names['region']}", "description": "d"},
        ({"description": "e", "parent_region": names["region"]},),
        NEVER,
    ),
    "endpoint": lambda names: Life(
        "OS::Keystone::Endpoint",
        {"service": names["service"], "interface": "public", "url": "http://a.example", "region": names["region"]},
        ({"interface": "internal", "url": "http://b.example"}, {"enabled": False}),
        NEVER,
    ),
}


@pytest.mark.parametrize("kind", LIVES)
def test_it_lives_and_dies(kind: str, cloud: OpenStackCloud, names: Names) -> None:
    life = LIVES[kind](names)
    check_never(cloud, kind, life.handle)
    check_life(cloud, life)


@pytest.mark.parametrize("kind", sorted(LIVES.keys() - {"project", "user"}))
def test_a_lost_answer_has_made_one(kind: str, cloud: OpenStackCloud, project: Project, names: Names) -> None:
    """Not of projects and users: other tests make these at the same time, and would lose their answers."""
    check_lost(cloud, project, LIVES[kind](names), "keystone", f"/{kind}s$")


ROLES: dict[str, list[dict[str, str]]] = {
    "first": [{"role": "member", "project": "project"}, {"role": "reader", "domain": "domain"}],
    "second": [{"role": "reader", "project": "project"}],
}


@pytest.mark.parametrize("holder", ["user", "group"])
def test_roles_are_given_and_taken(holder: str, cloud: OpenStackCloud, names: Names) -> None:
    type = f"OS::Keystone::{holder.title()}RoleAssignment"
    first, second = ([{k: names.get(v, v) for k, v in each.items()} for each in ROLES[name]] for name in ROLES)
    life = Life(type, {holder: names[holder], "roles": first})
    check_never(cloud, "role_assignment", f"{holder}s/{NEVER}:{NEVER}@projects/{NEVER}")
    handle = make(cloud, type, life.properties)
    assert make(cloud, type, life.properties) == handle, "making it again changes nothing"
    assert life.differing(cloud.observe("role_assignment", [handle])[0], "n") == ()
    changed = Change(handle, life.spec("n", {"roles": second}), ("roles",))
    after = accepted(lambda: cloud.update("role_assignment", [changed])).handle
    old, new = cloud.observe("role_assignment", [handle, after])
    assert not old.present
    assert len(new.properties["roles"]) == 1
    assert life.differing(new, "n", {"roles": second}) == ()
    assert life.differing(new, "n") == ("roles",), "roles that are taken away by hand are given again"
    remove(cloud, "role_assignment", after)
    assert accepted(lambda: cloud.delete("role_assignment", [after])).not_found


def test_roles_that_others_gave_stay(cloud: OpenStackCloud, names: Names) -> None:
    own = [{"role": "reader", "project": names["project"]}]
    user = make(cloud, "OS::Keystone::User", {"roles": own})
    others = {"user": user, "roles": [{"role": "member", "project": names["project"]}]}
    given = make(cloud, "OS::Keystone::UserRoleAssignment", others)
    accepted(lambda: cloud.update("user", [Change(user, {"roles": []}, ("roles",))]))
    assert len(cloud.observe("user", [user])[0].properties["roles"]) == 1
    assert cloud.observe("role_assignment", [given])[0].present
    remove(cloud, "user", user)
    assert not cloud.observe("role_assignment", [given])[0].present


def test_a_name_that_is_taken_does_not_spoil_the_others(cloud: OpenStackCloud, names: Names) -> None:
    specs = [{"name": names["project"], "domain_id": "default"}, {"name": f"good-{names['project']}"}]
    taken, made = cloud.create("project", [Creation(f"p-{uuid.uuid4()}", each) for each in specs])
    assert isinstance(taken, Terminal)
    assert "not permitted to have two projects" in str(taken)
    assert isinstance(made, Observation)
    many = [made.handle, NEVER, *(f"{NEVER}{number}" for number in range(3))]
    assert [each.present for each in cloud.observe("project", many)] == [True, False, False, False, False]
    remove(cloud, "project", made.handle)


def test_members_learn_what_they_lack(member: OpenStackCloud, project: Project) -> None:
    for kind, life in (("project", LIVES["project"]), ("user", LIVES["user"]), ("endpoint", LIVES["endpoint"])):
        known = dict.fromkeys(("domain", "project", "group", "user", "service", "region"), NEVER)
        refused = member.create(
            kind, [Creation(f"m-{uuid.uuid4()}", life({**known, "region": "RegionOne"}).spec("m"))]
        )[0]
        assert isinstance(refused, Terminal)
        assert "not authorized to perform" in str(refused)
        assert "needs a role that allows it, such as admin" in str(refused)
    with pytest.raises(Transient, match="not authorized"):
        member.observe("user", [NEVER])
    assert member.observe("project", [project.id])[0].properties["name"] == project.name
    assert member.collections["project"].id_of(NEVER) == NEVER, "members name the things of others by their ids"
