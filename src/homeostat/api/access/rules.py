"""The authorization rules: names and defaults, as the clients and policy files of OpenStack know them.

Additional rules guard operations that only this service has. Routes name the rule that guards them (`policy.may`); the
requests listed for a rule follow from the routes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from oslo_policy.policy import DeprecatedRule, DocumentedRuleDefault, RuleDefault

from homeostat.model.caller import STACK_USER

NOBODY = "rule:deny_everybody"
ADMIN = "rule:project_admin"
CLOUD_ADMIN = "rule:context_is_admin"
PROJECT_ADMIN = "role:admin and project_id:%(project_id)s"
MEMBER = "role:member and project_id:%(project_id)s"
READER = "role:reader and project_id:%(project_id)s"
MEMBER_OR_STACK_USER = f"({MEMBER}) or (role:{STACK_USER} and project_id:%(project_id)s)"
READER_OR_STACK_USER = f"({READER}) or (role:{STACK_USER} and project_id:%(project_id)s)"
NO_STACK_USER = "rule:deny_stack_user"
ANYBODY = "rule:allow_everybody"
WORDS: Mapping[str, str] = {
    NOBODY: "nobody",
    ADMIN: "admins",
    CLOUD_ADMIN: "admins of the whole cloud",
    PROJECT_ADMIN: "admins of the project",
    MEMBER: "members",
    READER: "readers",
    MEMBER_OR_STACK_USER: "members and stack users",
    READER_OR_STACK_USER: "readers and stack users",
}
"""Defaults in words, for documentation."""
SINCE = "It was made before there were readers and members."
RESOURCE_TYPES = "resource_types:"

BASE = (
    RuleDefault(
        "context_is_admin",
        "(role:admin and is_admin_project:True) or (role:admin and system_scope:all)",
        "Who is an admin of the whole cloud: sees the stacks of all projects.",
    ),
    RuleDefault("project_admin", "role:admin", "Who is an admin of a project."),
    RuleDefault("deny_stack_user", f"not role:{STACK_USER}", "Everybody but the users made for servers."),
    RuleDefault("deny_everybody", "!", "Nobody."),
    RuleDefault("allow_everybody", "", "Everybody."),
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One authorization rule.

    Attributes:
        allows: Its default check.
        old: The deprecated default, from before the roles reader and member; None if there is none.
        ours: The rule exists only in this service, not in Heat.
        on: Method and path below the project, for a rule that no route names.
    """

    name: str
    allows: str
    description: str
    old: str | None = NO_STACK_USER
    ours: bool = False
    on: tuple[str, str] | None = None

    def default(self, operations: Iterable[tuple[str, str]]) -> RuleDefault:
        """Return the rule in the form of oslo.policy, for project-scoped tokens.

        Args:
            operations: Methods and paths that the rule guards.
        """
        deprecated = None
        if self.old is not None:
            deprecated = DeprecatedRule(self.name, self.old, deprecated_reason=SINCE, deprecated_since="0.1")
        listed: Any = [{"method": method, "path": path} for method, path in operations]
        more: Any = {"deprecated_rule": deprecated, "scope_types": None if self.allows == NOBODY else ["project"]}
        if not listed:
            return RuleDefault(self.name, self.allows, self.description, **more)
        return DocumentedRuleDefault(self.name, self.allows, self.description, listed, **more)


@dataclass(frozen=True, slots=True)
class RuleFamily:
    """Rules whose names have the same prefix."""

    prefix: str
    readers: Mapping[str, str] = field(default_factory=dict)
    members: Mapping[str, str] = field(default_factory=dict)
    ours: bool = False
    on: tuple[str, str] | None = None

    def rules(self) -> list[Rule]:
        old = None if self.ours else NO_STACK_USER
        return [
            Rule(f"{self.prefix}:{name}", allows, description, old, self.ours, self.on)
            for allows, named in ((READER, self.readers), (MEMBER, self.members))
            for name, description in named.items()
        ]


ACTIONS = ("POST", "/stacks/{stack_name}/{stack_id}/actions")
RESOURCE_ACTIONS = ("POST", "/stacks/{stack_name}/{stack_id}/resources/{resource_name}/actions")
CLUSTERING = (
    RuleFamily(
        "profile_types",
        readers={
            "index": "List the types of profiles.",
            "get": "Show a type of profiles.",
            "ops": "List the operations on nodes of a type of profiles.",
        },
    ),
    RuleFamily("policy_types", readers={"index": "List the types of policies.", "get": "Show a type of policies."}),
    RuleFamily(
        "profiles",
        readers={"index": "List profiles.", "get": "Show a profile.", "validate": "Check the spec of a profile."},
        members={"create": "Make a profile.", "update": "Change a profile.", "delete": "Delete a profile."},
    ),
    RuleFamily(
        "policies",
        readers={"index": "List policies.", "get": "Show a policy.", "validate": "Check the spec of a policy."},
        members={"create": "Make a policy.", "update": "Change a policy.", "delete": "Delete a policy."},
    ),
    RuleFamily(
        "clusters",
        readers={"index": "List clusters.", "get": "Show a cluster.", "collect": "Collect attributes of nodes."},
        members={
            "create": "Make a cluster.",
            "update": "Change a cluster.",
            "delete": "Delete a cluster.",
            "action": "Perform a cluster action, such as a resize.",
            "operation": "Perform an operation on the nodes of a cluster.",
        },
    ),
    RuleFamily(
        "cluster_policies",
        readers={"index": "List the policies of a cluster.", "get": "Show a policy of a cluster."},
    ),
    RuleFamily(
        "nodes",
        readers={"index": "List nodes.", "get": "Show a node."},
        members={
            "create": "Make a node.",
            "update": "Change a node.",
            "delete": "Delete a node.",
            "adopt": "Adopt a server as a node.",
            "adopt_preview": "Preview the profile of a server that would be adopted as a node.",
            "action": "Check or recover a node.",
            "operation": "Perform an operation on a node.",
        },
    ),
    RuleFamily(
        "receivers",
        readers={"index": "List receivers.", "get": "Show a receiver."},
        members={
            "create": "Make a receiver.",
            "update": "Change a receiver.",
            "delete": "Delete a receiver.",
            "notify": "Start the action that a message to a receiver requests.",
        },
    ),
    RuleFamily(
        "actions",
        readers={"index": "List actions of clusters.", "get": "Show an action of a cluster."},
        members={"update": "Cancel an action of a cluster."},
    ),
)
"""Rules of the Clustering API, by Senlin's names.

`events:index`, `build_info:build_info` and `service:index` are shared with the Orchestration API.
"""
OF_TYPES: Mapping[str, tuple[str, ...]] = {
    "OS::Senlin::Cluster": ("clusters:create", "clusters:update", "clusters:action", "clusters:delete"),
    "OS::Senlin::Node": ("nodes:create", "nodes:update", "nodes:delete"),
    "OS::Senlin::Policy": ("policies:create", "policies:update", "policies:delete", "clusters:action"),
    "OS::Senlin::Profile": ("profiles:create", "profiles:update", "profiles:delete"),
    "OS::Senlin::Receiver": ("receivers:create", "receivers:delete"),
}
"""Resource type -> rules of the service's operations for the type: callers need all of them to use the type."""
FAMILIES = (
    RuleFamily(
        "stacks",
        readers={
            "detail": "List stacks, as shown one by one.",
            "index": "List stacks.",
            "list_resource_types": "List resource types.",
            "list_template_versions": "List template versions.",
            "list_template_functions": "List the functions of a template version.",
            "preview": "Preview a stack.",
            "resource_schema": "Show a resource type.",
            "show": "Show a stack.",
            "template": "Show the template of a stack.",
            "environment": "Show the environment of a stack.",
            "files": "Show the files of a stack.",
            "show_snapshot": "Show a snapshot.",
            "list_snapshots": "List the snapshots of a stack.",
            "list_outputs": "List the outputs of a stack.",
            "show_output": "Show an output.",
        },
        members={
            "abandon": "Abandon a stack: stop managing it and keep its resources.",
            "create": "Create or adopt a stack.",
            "delete": "Delete a stack.",
            "export": "Export a stack.",
            "generate_template": "Make a template that has one resource of a type.",
            "update": "Update a stack.",
            "update_patch": "Update parts of a stack.",
            "preview_update": "Preview an update.",
            "preview_update_patch": "Preview an update of parts.",
            "validate_template": "Validate a template.",
            "snapshot": "Take a snapshot of a stack.",
            "delete_snapshot": "Delete a snapshot.",
            "restore_snapshot": "Restore a snapshot.",
        },
    ),
    RuleFamily(
        "stacks",
        readers={
            "list_revisions": "List the revisions of a stack.",
            "show_revision": "Show a revision of a stack.",
            "explain": "Explain why a stack is not at rest.",
            "graph": "Show the graph of a stack.",
            "show_convergence": "Show the settings of continuous convergence.",
        },
        members={"switch_convergence": "Switch continuous convergence."},
        ours=True,
    ),
    RuleFamily(
        "actions",
        readers={"check": "Check the resources of a stack; change nothing."},
        members={
            "action": "Any action on a stack that has no rule of its own.",
            "snapshot": "Take a snapshot by an action.",
            "suspend": "Suspend a stack.",
            "resume": "Resume a stack.",
            "cancel_update": "Stop an update and roll back.",
            "cancel_without_rollback": "Stop the action in progress, without a rollback.",
        },
        on=ACTIONS,
    ),
    RuleFamily(
        "actions",
        readers={"observe": "Observe all resources of a stack now."},
        members={
            "converge": "Bring a stack to its desired state now.",
            "lock": "Lock a stack.",
            "unlock": "Unlock a stack that the caller has locked.",
        },
        ours=True,
        on=ACTIONS,
    ),
    RuleFamily(
        "resource",
        readers={"index": "List the resources of a stack.", "show": "Show a resource."},
        members={"mark_unhealthy": "Mark resources unhealthy or healthy."},
    ),
    RuleFamily("resource", readers={"explain": "Explain why a resource is not at rest."}, ours=True),
    RuleFamily(
        "resource_actions",
        readers={"observe": "Observe a resource now."},
        members={
            "action": "Any action on a resource that has no rule of its own.",
            "converge": "Bring a resource to its desired state now.",
        },
        ours=True,
        on=RESOURCE_ACTIONS,
    ),
    RuleFamily(
        "rollouts",
        readers={"index": "List the rollouts of a stack.", "show": "Show a rollout."},
        members={
            "steer": "Pause, resume, promote, abort or roll back a rollout.",
            "approve": "Approve a step of a rollout.",
        },
        ours=True,
    ),
    RuleFamily(
        "health",
        readers={"index": "List the findings of health policies."},
        members={"approve": "Approve the recovery of a resource."},
        ours=True,
    ),
    RuleFamily("events", readers={"index": "List events.", "show": "Show an event."}),
    RuleFamily("build_info", readers={"build_info": "Show what is running."}),
    RuleFamily(
        "software_configs",
        readers={"index": "List software configs.", "show": "Show a software config."},
        members={"create": "Create a software config.", "delete": "Delete a software config."},
    ),
    RuleFamily(
        "software_deployments",
        readers={"index": "List software deployments.", "show": "Show a software deployment."},
        members={
            "create": "Create a software deployment.",
            "update": "Update a software deployment.",
            "delete": "Delete a software deployment.",
        },
    ),
    RuleFamily(
        "cloudformation",
        readers={
            "ListStacks": "List stacks.",
            "DescribeStacks": "Show stacks.",
            "DescribeStackEvents": "List events.",
            "ValidateTemplate": "Validate a template.",
            "GetTemplate": "Show the template of a stack.",
            "EstimateTemplateCost": "Estimate the cost of a template.",
            "DescribeStackResources": "Show resources.",
            "ListStackResources": "List the resources of a stack.",
        },
        members={
            "CreateStack": "Create a stack.",
            "UpdateStack": "Update a stack.",
            "DeleteStack": "Delete a stack.",
            "CancelUpdateStack": "Stop an update and roll back.",
        },
    ),
    *CLUSTERING,
)
SINGLE = (
    Rule("stacks:lookup", READER_OR_STACK_USER, "Find a stack by its name or id.", ANYBODY),
    Rule("stacks:update_no_change", "rule:stacks:update_patch", "Update parts of a stack, changing nothing.", None),
    Rule("stacks:global_index", NOBODY, "List the stacks of all projects.", None, on=("GET", "/stacks")),
    Rule(
        "software_configs:global_index",
        NOBODY,
        "List the software configs of all projects.",
        None,
        on=("GET", "/software_configs"),
    ),
    Rule("actions:break_lock", PROJECT_ADMIN, "Unlock stacks locked by other users.", None, ours=True, on=ACTIONS),
    Rule("resource:metadata", READER_OR_STACK_USER, "Show the metadata of a resource.", ANYBODY),
    Rule("resource:signal", READER_OR_STACK_USER, "Signal a resource.", ANYBODY),
    Rule(
        "resource:signal_gate",
        MEMBER_OR_STACK_USER,
        "Signal resources that act (handles of rollouts, groups whose members report, scaling policies); see their "
        "signed addresses.",
        None,
        ours=True,
        on=("POST", "/stacks/{stack_name}/{stack_id}/resources/{resource_name}/signal"),
    ),
    Rule(
        "resource:clear_hook",
        MEMBER,
        "Clear a hook at which a resource waits (a signal with `unset_hook`).",
        ours=True,
        on=("POST", "/stacks/{stack_name}/{stack_id}/resources/{resource_name}/signal"),
    ),
    Rule("software_deployments:metadata", READER_OR_STACK_USER, "List the configs that a server is to apply.", None),
    Rule("cloudformation:DescribeStackResource", READER_OR_STACK_USER, "Show a resource with its metadata.", ANYBODY),
    Rule("cloudformation:SignalResource", READER_OR_STACK_USER, "Report the status of a group member.", ANYBODY),
    Rule("service:index", PROJECT_ADMIN, "List the workers.", CLOUD_ADMIN),
    Rule("service:show", PROJECT_ADMIN, "Show workers, shards and the limits of requests.", None, ours=True),
    Rule("service:examine", CLOUD_ADMIN, "Examine the service; names stacks of all projects.", None, ours=True),
)
RULES = tuple(rule for family in FAMILIES for rule in family.rules()) + SINGLE
"""All rules that guard requests."""

FOR_ADMINS = (
    "OS::Blazar::Host",
    "OS::Cinder::EncryptedVolumeType",
    "OS::Cinder::QoSAssociation",
    "OS::Cinder::QoSSpecs",
    "OS::Cinder::Quota",
    "OS::Cinder::VolumeType",
    "OS::Keystone::*",
    "OS::Manila::ShareType",
    "OS::Neutron::ProviderNet",
    "OS::Neutron::QoSBandwidthLimitRule",
    "OS::Neutron::QoSDscpMarkingRule",
    "OS::Neutron::QoSMinimumBandwidthRule",
    "OS::Neutron::QoSMinimumPacketRateRule",
    "OS::Neutron::QoSPolicy",
    "OS::Neutron::Quota",
    "OS::Neutron::Segment",
    "OS::Nova::Flavor",
    "OS::Nova::HostAggregate",
    "OS::Nova::Quota",
    "OS::Octavia::AvailabilityZone",
    "OS::Octavia::AvailabilityZoneProfile",
    "OS::Octavia::Flavor",
    "OS::Octavia::FlavorProfile",
    "OS::Octavia::Quota",
)
"""Resource types that only admins may have in their stacks. `*` stands for all types of a service."""


def type_rules() -> list[RuleDefault]:
    """Return a rule without operations for each resource type that is restricted."""
    return [RuleDefault(f"{RESOURCE_TYPES}{name}", ADMIN, f"Have stacks with {name}.") for name in FOR_ADMINS]


def defaults(operations: Mapping[str, Iterable[tuple[str, str]]] | None = None) -> list[RuleDefault]:
    """Return all rules with their defaults.

    Args:
        operations: Rule -> methods and paths of the guarded requests.
    """
    known = operations or {}
    return [*BASE, *(rule.default(_operations(rule, known)) for rule in RULES), *type_rules()]


def _operations(rule: Rule, known: Mapping[str, Iterable[tuple[str, str]]]) -> Iterable[tuple[str, str]]:
    if rule.on is None:
        return known.get(rule.name, ())
    method, path = rule.on
    return [(method, f"/v1/{{project}}{path}")]


NAMES = frozenset(rule.name for rule in defaults())
