"""The index of all commands, so that a start loads only the module of its command, and help loads none."""

from collections.abc import Mapping

from homeostat.model.stack_actions import STACK_ACTIONS

INDEX: Mapping[str, Mapping[str, str]] = {
    "cli.stack_commands": {
        "up": "create a stack, or update it if it exists, and watch it come up",
        "watch": "show a stack live",
        "list": "list the stacks of the project",
        "show": "show a stack: parameters, resources, outputs",
        "events": "list the events of a stack",
        "explain": "explain why resources wait: reason, since when, until when, and how long it will take",
        "down": "delete a stack and all its resources",
    },
    "cli.graph": {
        "graph": "draw the resources of a stack with dependencies and states; each nested stack is one node",
    },
    "cli.plan": {
        "plan": "show what `up` would create, update, replace and delete, and why; nothing is changed",
    },
    "cli.stack_actions": {
        "observe": "observe a stack now, and show the differences from its desired state",
        "converge": "observe a stack, bring it to its desired state, and retry what has failed",
        **{name.lower(): action.summary for name, action in STACK_ACTIONS.items() if action.summary},
        "lock": "lock a stack: nothing changes it, not even convergence, until it is unlocked",
        "convergence": "show or set whether a stack converges by itself, how often it is observed, and how it heals",
    },
    "cli.rollouts": {
        "rollout": "show and control rollouts: members of a group get new metadata, or a new definition, step by step",
    },
    "cli.health_findings": {
        "health": "show the health of members with a health policy, and approve recoveries",
    },
    "cli.history": {
        "history": "list the revisions of a stack, show one of them, or compare two",
        "back": "return a stack to an earlier revision; it is stored as the newest, so you can undo this in the same "
        "way",
    },
    "composition.service": {
        "serve": "run the whole service: API and workers, each a process of its own",
        "api": "run an API process alone",
        "worker": "run a worker process alone",
    },
    "composition.doctor": {
        "doctor": "check the service, running or not, and suggest what to do",
    },
    "cli.operator_commands": {
        "purge": "remove stacks deleted long ago, old events, and revisions and files that no stack needs, from the "
        "database",
        "migrate": "bring the schema of the database to this version, in two phases if older versions still run",
        "register": "register the service in Keystone (users, roles, domain, catalogue), and write its configuration "
        "file",
        "keys": "generate, count and rotate the keys that encrypt secrets in the database",
        "types": "list the resource types of this installation, and where each comes from",
    },
    "cli.backup": {
        "backup": "write the database, its keys and the local cloud to one file, while the service runs",
        "restore": "replace the state directory with a backup, and list resources made since",
        "untracked": "list resources of the service in the local cloud that belong to no stack, to adopt or delete "
        "them",
    },
    "cli.cluster_import": {
        "import-clusters": "import clusters from Senlin, with their running servers",
    },
    "composition.policy": {
        "policy": "list the access rules, write a sample policy file, or check a policy file",
    },
    "cli.completion": {
        "completion": "print a script by which your shell completes commands, flags and files",
    },
}
"""Module -> its commands, in the order of the help -> summary. The module adds the flags of each of them."""

SUMMARIES = {name: summary for commands in INDEX.values() for name, summary in commands.items()}
