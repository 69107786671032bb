"""The page of the rules that say who may do what."""

from collections.abc import Sequence

from docs.type_pages import row
from oslo_policy.policy import RuleDefault

from homeostat.api.access import rules
from homeostat.api.policy_text import in_words, list_rules

HEAD = """\
# Rules

Who may do what, as long as no [policy file](../howto/who-may-do-what.md) says otherwise. The names are those that
policy files of OpenStack use; those marked with a star are additions of this service. In [policy.yaml](policy.yaml) are
the same rules with their checks, as a file to start from.

- **readers** have the role `reader` in the project, **members** `member`, **admins** `admin`. An admin is a member, and
  a member a reader.
- **stack users** have the role `heat_stack_user`: they are made for servers, and reach what is meant for them alone.

""".splitlines()
TYPES = """\
## Resource types

Stacks with these types are for admins alone: others can neither create, change nor delete them, and do not see the
types in listings. `*` stands for all types of a service; a policy file may name further types.
""".splitlines()


def page() -> str:
    listed = {each.name: each for each in list_rules()}
    lines = [*HEAD, "| rule | who | may | by |", "|---|---|---|---|"]
    for rule in sorted(rules.RULES, key=lambda each: each.name):
        star = " *" if rule.ours else ""
        lines.append(row(f"`{rule.name}`{star}", in_words(rule.allows), rule.description, _requests(listed[rule.name])))
    return "\n".join([*lines, "", *TYPES, "", *(f"- `{each}`" for each in rules.FOR_ADMINS), ""])


def _requests(rule: RuleDefault) -> str:
    operations: Sequence[dict[str, str]] = getattr(rule, "operations", ())
    return ", ".join(f"`{each['method']} {each['path'].removeprefix('/v1/{project}')}`" for each in operations)
