"""The page of what there is on an OpenStack: kinds, places of tokens, microversions, and what answers mean."""

from collections import defaultdict
from collections.abc import Mapping

from docs.type_pages import row

from homeostat.clouds.openstack.answers import RULES, Rule
from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.registry import COLLECTIONS, VERSIONS
from homeostat.kinds.registry import CLOUD_KINDS
from homeostat.resources.registry import types

NOT_OFFERED: Mapping[tuple[str, ...], str] = {
    ("firewall", "firewall_policy", "firewall_rule"): "Neutron has no firewalls of this kind any more",
    ("l2_gateway", "l2_gateway_connection"): "Neutron has it with a plug-in that was not tried",
    ("network_gateway",): "no Neutron has it without a proprietary plug-in",
    ("remote_stack",): "it is a stack in another region, which any cloud has beside its own things",
    ("app_container",): "Zun needs Docker, which the tests' cloud has not; its own fake driver makes nothing",
    ("database_instance", "database_cluster"): "Trove waits for its agent in a server: the tests' servers run nothing",
    ("signed_queue_url",): "Zaqar keeps none of the URLs that it signs: nothing can be looked at",
    ("workflow_trigger",): "not tried yet with Zaqar and Mistral together",
}
"""Kinds that this cloud does not have -> why."""

HEAD = """\
# On an OpenStack

What `--cloud openstack` has: `homeostat.clouds.openstack` as a page. How to set it up is in [Build in an
OpenStack](../howto/openstack.md).

## Kinds of things

Each was seen working with the real service; a template with a type of any other kind is refused, and the error names
it. The services know no idempotency tokens. So each thing carries its token in a place that the service stores with
the creation and shows in its lists: by it, what a lost answer has made is found
([ADR 0060](../adr/0060-openstack-adapter.md)).
""".splitlines()
LOOKS_HEAD = """\
## What a look costs

While nothing happens, a look at all things of a kind in a project is one list, or a few, however many there are. Of
these kinds it takes further requests:
""".splitlines()
NOT_OFFERED_HEAD = """\
## Not offered

A template with one of these types is refused, unless an environment maps the type to another one.
""".splitlines()
VERSIONS_HEAD = """\
## Microversions

The newest that both sides know is used; a service that knows only older ones is refused.
""".splitlines()
ANSWERS_HEAD = """\
## What answers mean

The first row that fits counts.

- **transient**: tried again later, after `Retry-After` where the service gives it
- **terminal**: the resource fails with the service's own words
- **uncertain**: the thing is looked for by its token before anything is sent again
- **missing**: the thing is absent
- **unauthenticated**: sent once more with a new token, and transient if that is refused as well
""".splitlines()


def page() -> str:
    lines = [*HEAD, ""]
    by_service: dict[str, list[type[Collection]]] = defaultdict(list)
    for each in COLLECTIONS:
        by_service[each.service].append(each)
    lines += ["| service | kind | resource types | place of the token |", "|---|---|---|---|"]
    for service, collections in sorted(by_service.items()):
        lines += [_kind(service, each) for each in sorted(collections, key=lambda each: each.kind)]
    lines += ["", *NOT_OFFERED_HEAD, "", "| kind | resource types | why |", "|---|---|---|", *map(_lacking, lacking())]
    lines += ["", *LOOKS_HEAD, "", "| kind | further requests |", "|---|---|"]
    lines += [row(f"[{each.kind}](kinds.md#{each.kind})", each.further_looks) for each in _costly()]
    lines += ["", *VERSIONS_HEAD, "", "| service | lowest | highest |", "|---|---|---|"]
    lines += [row(service, *ends) for service, ends in sorted(VERSIONS.items())]
    lines += ["", *ANSWERS_HEAD, "", "| service | method | code | words | meaning | why |", "|---|---|---|---|---|---|"]
    return "\n".join([*lines, *map(_rule, RULES), ""])


def _costly() -> list[type[Collection]]:
    return sorted((each for each in COLLECTIONS if each.further_looks), key=lambda each: each.kind)


def lacking() -> list[str]:
    """Return the kinds that this cloud does not have, and that templates can name.

    Raises:
        ValueError: `NOT_OFFERED` does not say why of each, or has others.
    """
    offered = {each.kind for each in COLLECTIONS}
    explained = {kind for kinds in NOT_OFFERED for kind in kinds}
    if explained != CLOUD_KINDS.keys() - offered:
        raise ValueError(f"NOT_OFFERED is wrong about {', '.join(sorted(explained ^ (CLOUD_KINDS.keys() - offered)))}")
    return [kind for kinds in NOT_OFFERED for kind in kinds]


def _lacking(kind: str) -> str:
    why = next(why for kinds, why in NOT_OFFERED.items() if kind in kinds)
    return row(f"[{kind}](kinds.md#{kind})", _types_of(kind), why)


def _types_of(kind: str) -> str:
    return ", ".join(sorted(name for name, each in types().items() if each.kind == kind and not each.support.hidden))


def _kind(service: str, collection: type[Collection]) -> str:
    kind = collection.kind
    shown = f"[{kind}](kinds.md#{kind})" if kind in CLOUD_KINDS else kind
    return row(service, shown, _types_of(kind), collection.token.words)


def _rule(rule: Rule) -> str:
    words = f"`{rule.words}`" if rule.words else ""
    return row(
        rule.service or "any",
        " ".join(sorted(rule.methods)) or "any",
        _codes(rule),
        words,
        rule.meaning.value,
        rule.why,
    )


def _codes(rule: Rule) -> str:
    codes = sorted(rule.codes)
    return f"{codes[0]}-{codes[-1]}" if len(codes) > 9 else ", ".join(map(str, codes))
