"""Who may do what: the rules, their defaults and the operator's file."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.routing import APIRoute

from homeostat.api.access import rules
from homeostat.api.access.auth import with_implied
from homeostat.api.access.enforcer import Policy, read_policy
from homeostat.api.access.policy import rule_of
from homeostat.api.orchestration.routers import ROUTERS
from homeostat.api.policy_text import list_rules
from homeostat.clustering.wire.routers import ROUTERS as CLUSTERING
from homeostat.model.caller import STACK_USER as SERVER_ROLE
from homeostat.model.caller import Caller
from homeostat.model.errors import Rejected


def caller(roles: str, project: str = "p", user: str = "ada") -> Caller:
    return Policy().known(Caller(user, project, roles=with_implied(roles)))


STACK_USER = Caller("server", "p", roles=frozenset({SERVER_ROLE}))
VISITOR = Caller("guest", "p", roles=frozenset({"visitor"}))


def test_every_route_names_a_rule_that_there_is() -> None:
    every = [*ROUTERS, *CLUSTERING]
    routes = [route for router in every for route in router.routes if isinstance(route, APIRoute)]
    assert len(routes) > 70
    without = [f"{sorted(route.methods or ())} {route.path}" for route in routes if rule_of(route) is None]
    assert not without, f"these routes need dependencies=[may('family:name')]: {without}"
    unknown = {str(rule_of(route)) for route in routes} - rules.NAMES
    assert not unknown, f"these rules need a default in api/access/rules.py: {sorted(unknown)}"


def test_every_rule_lists_the_requests_that_it_guards() -> None:
    without = {each.name for each in list_rules() if ":" in each.name and not getattr(each, "operations", None)}
    without = {each for each in without if not each.startswith((rules.RESOURCE_TYPES, "cloudformation:"))}
    assert without == {"stacks:update_no_change"}, "a rule that no route names guards nothing"


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("rule", "admin", "member", "reader", "stack_user", "visitor"),
    [
        ("stacks:create", True, True, False, False, False),
        ("stacks:show", True, True, True, False, False),
        ("stacks:lookup", True, True, True, True, False),
        ("resource:signal", True, True, True, True, False),
        ("resource:clear_hook", True, True, False, False, False),
        ("resource:metadata", True, True, True, True, False),
        ("actions:check", True, True, True, False, False),
        ("actions:converge", True, True, False, False, False),
        ("actions:break_lock", True, False, False, False, False),
        ("clusters:create", True, True, False, False, False),
        ("clusters:get", True, True, True, False, False),
        ("service:index", True, False, False, False, False),
        ("stacks:global_index", False, False, False, False, False),
        ("cloudformation:DescribeStackResource", True, True, True, True, False),
        ("cloudformation:SignalResource", True, True, True, True, False),
    ],
)
def test_defaults(rule: str, admin: bool, member: bool, reader: bool, stack_user: bool, visitor: bool) -> None:
    policy = Policy()
    callers = [caller("admin"), caller("member"), caller("reader"), STACK_USER, VISITOR]
    assert [policy.allows(rule, each, "p") for each in callers] == [admin, member, reader, stack_user, visitor]
    assert not policy.allows(rule, caller("member"), "q"), "of another project"
    assert policy.allows(rule, Caller(), "any"), "where nobody is asked who it is"


def test_admins_have_the_same_roles_everywhere() -> None:
    policy = Policy()
    assert policy.allows("stacks:create", caller("admin"), "another")
    assert not policy.allows("stacks:global_index", caller("admin"), "another")
    assert caller("admin").is_admin
    assert not caller("member").is_admin


def test_defaults_of_the_past_hold_where_they_are_wanted() -> None:
    custom = Caller("eve", "p", roles=frozenset({"heat_stack_owner"}))
    assert not Policy().allows("stacks:create", custom, "p")
    old = Policy(old_defaults=True)
    assert old.allows("stacks:create", custom, "p")
    assert not old.allows("stacks:create", STACK_USER, "p")
    assert not old.allows("actions:converge", custom, "p"), "an addition of ours has no past"


def test_only_admins_have_some_types() -> None:
    policy = Policy()
    assert policy.may_use("OS::Nova::Server", caller("member"), "p")
    for name in ("OS::Nova::Flavor", "OS::Keystone::User", "OS::Keystone::Project"):
        assert not policy.may_use(name, caller("member"), "p")
        assert policy.may_use(name, caller("admin"), "p")
        assert policy.may_use(name, Caller(), "p")
    with pytest.raises(Rejected, match="You are not authorized to use OS::Nova::Flavor") as refused:
        policy.check_types({"OS::Nova::Server": (), "OS::Nova::Flavor": ()}, caller("member"), "p")
    assert (refused.value.code, refused.value.fault) == (403, "Forbidden")


def test_a_type_is_for_those_who_may_do_what_the_service_does_for_it(policy_file: Callable[[str], Path]) -> None:
    policy = Policy(policy_file('"clusters:action": "role:operator"\n"receivers:create": "!"\n'))
    allowed = [each for each in rules.OF_TYPES if policy.may_use(each, caller("member"), "p")]
    assert allowed == ["OS::Senlin::Node", "OS::Senlin::Profile"]
    assert set(policy.denied_types(caller("member"), "p")) >= set(rules.OF_TYPES) - set(allowed)
    assert all(policy.may_use(each, Caller(), "p") for each in rules.OF_TYPES)
    assert all(Policy().may_use(each, caller("member"), "p") for each in rules.OF_TYPES)
    assert not any(Policy().may_use(each, caller("reader"), "p") for each in rules.OF_TYPES)
    assert {rule for named in rules.OF_TYPES.values() for rule in named} <= rules.NAMES


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def policy_file(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "policy.yaml"
        path.write_text(text)
        return path

    return write


def test_a_file_overrides_defaults(policy_file: Callable[[str], Path]) -> None:
    path = policy_file(
        '"operators": "role:operator"\n"stacks:create": "rule:operators"\n"resource_types:OS::Nova::Server": "!"\n'
    )
    policy = Policy(path)
    operator = Caller("op", "p", roles=frozenset({"operator"}))
    assert policy.allows("stacks:create", operator, "p")
    assert not policy.allows("stacks:create", caller("member"), "p")
    assert policy.allows("stacks:delete", caller("member"), "p")
    assert not policy.may_use("OS::Nova::Server", caller("member"), "p")


def test_a_file_is_read_again(policy_file: Callable[[str], Path]) -> None:
    now = 0.0
    policy = Policy(policy_file('"stacks:show": "role:member"\n'), monotonic=lambda: now)
    assert not policy.allows("stacks:show", caller("reader"), "p")
    policy_file('"stacks:show": "@"\n')
    now = 2.0
    assert policy.allows("stacks:show", caller("reader"), "p")
    policy_file("- no\n- policy\n")
    now = 4.0
    assert policy.allows("stacks:show", caller("reader"), "p"), "a wrong file is not taken over"
    policy_file("")
    now = 6.0
    assert not policy.allows("stacks:show", VISITOR, "p")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [\n", "line 2"),
        ("- role:member\n", "line 1: a map of rules"),
        ('"stacks:create": [member]\n', "line 1: a rule is a name and a text"),
        ('# ours\n"stacks:creat": "@"\n', r"line 2: there is no rule stacks:creat; do you mean stacks:create\?"),
        ('"x": "@"\n"stacks:show": "role:a adn role:b"\n', "line 2: stacks:show: the check .* cannot be understood"),
        ('"stacks:show": "rule:friends"\n', "line 1: stacks:show names the rule friends, and there is none"),
        ('"a": "rule:b"\n"b": "role:x or rule:a"\n', "line 1: a refers to itself"),
        ('"a": "@"\n"a": "!"\n', "line 2: a is there already, in line 1"),
    ],
)
def test_files_that_are_wrong(policy_file: Callable[[str], Path], text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_policy(policy_file(text))


# -- tools of the library ----------------------------------------------------------------------------------------------


@pytest.mark.heavy
def test_the_tools_of_the_library_find_the_rules(policy_file: Callable[[str], Path], tmp_path: Path) -> None:
    """As entry points of an installed package. Here a package of nothing but these entry points is on the path."""
    declared = tomllib.loads(Path("pyproject.toml").read_text())["project"]["entry-points"]
    info = tmp_path / "packages" / "declared-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: declared\nVersion: 1\n")
    groups = ("oslo.policy.policies", "oslo.policy.enforcer")
    lines = [
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in declared[group].items()) for group in groups
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    same = '"stacks:show": "role:reader and project_id:%(project_id)s"\n'
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(info.parent), *sys.path]),
        "HOMEOSTAT_POLICY_FILE": str(policy_file(same + '"stacks:create": "@"\n')),
        "XDG_CACHE_HOME": str(tmp_path),
    }

    def tool(name: str) -> str:
        run = [
            sys.executable,
            "-c",
            f"from oslo_policy import generator; generator.{name}()",
            "--namespace",
            "homeostat",
        ]
        done = subprocess.run(run, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert '#"stacks:create": "role:member and project_id:%(project_id)s"' in tool("generate_sample")
    assert '"stacks:show"' in tool("list_redundant")
    assert '"stacks:create": "@"' in tool("generate_policy")


# -- scopes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked_as", "is_admin", "creates"),
    [
        (Caller("root", "p", roles=with_implied("admin")), True, True),
        (Caller("root", "p", roles=with_implied("admin"), of_admin_project=False), False, True),
        (Caller("root", "", roles=with_implied("admin"), of_system=True), True, False),
        (Caller("root", "", roles=with_implied("admin"), of_admin_project=False), False, False),
        (Caller("ada", "", roles=with_implied("member"), of_system=True), False, False),
    ],
    ids=["of a project", "of one that is not for admins", "of the system", "of a domain", "a member of the system"],
)
def test_scopes(asked_as: Caller, is_admin: bool, creates: bool) -> None:
    policy = Policy()
    known = policy.known(asked_as)
    assert known.is_admin == is_admin
    assert policy.allows("stacks:create", known, "p") == creates
