"""Types of the services around the clouds: their rules, what they ask for, and what they make of an answer."""

from typing import Any

import pytest
from tests.unit.resources.resource_cases import MINIMAL, thing

from homeostat.model.errors import Rejected, Terminal
from homeostat.model.observed import READY, Condition, Remedy
from homeostat.resources.registry import resource_type
from homeostat.resources.schema import UNKNOWN

CONTAINER, BUCKET, IMAGE = "OS::Swift::Container", "AWS::S3::Bucket", "OS::Glance::WebImage"
USER, EVENTS, COMPOSITE = "OS::Keystone::User", "OS::Aodh::EventAlarm", "OS::Aodh::CompositeAlarm"
METRIC, HEALTH = "OS::Aodh::GnocchiResourcesAlarm", "OS::Aodh::LBMemberHealthAlarm"
SECRETS, PAIR = "OS::Barbican::GenericContainer", "OS::Barbican::RSAContainer"
ZONE, WORKFLOW, EXTERNAL = "OS::Designate::Zone", "OS::Mistral::Workflow", "OS::Mistral::ExternalResource"
CRON, SHARE, SHARE_NETWORK = "OS::Mistral::CronTrigger", "OS::Manila::Share", "OS::Manila::ShareNetwork"
TEMPLATE, DATABASE, DATABASES = "OS::Magnum::ClusterTemplate", "OS::Trove::Instance", "OS::Trove::Cluster"
SUBSCRIPTION, SIGNED, APP = "OS::Zaqar::Subscription", "OS::Zaqar::SignedQueueURL", "OS::Zun::Container"
LEASE, HOST, CLUSTER = "OS::Blazar::Lease", "OS::Blazar::Host", "OS::Magnum::Cluster"

SECRET, ORDER = "OS::Barbican::Secret", "OS::Barbican::Order"
OCTETS = {"payload_content_type": "application/octet-stream", "payload_content_encoding": "base64"}
READER = {"name": "reader", "password": "wordpass", "databases": ["shop"]}
TASK = {"name": "t", "action": "std.noop"}
SPECS: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("headers as fields", CONTAINER, {"X-Container-Read": ".r:*"}, {"read_acl": ".r:*", "name": "stack-it-abc"}),
    ("a bucket for all", BUCKET, {"AccessControl": "PublicRead"}, {"read_acl": ".r:*", "write_acl": None}),
    ("a bucket to write to", BUCKET, {"AccessControl": "PublicReadWrite"}, {"read_acl": ".r:*", "write_acl": ".r:*"}),
    ("a bucket of one's own", BUCKET, {"AccessControl": "Private"}, {"read_acl": None, "write_acl": None}),
    (
        "tags and pages of a bucket",
        BUCKET,
        {"Tags": [{"Key": "a", "Value": "b"}], "WebsiteConfiguration": {"IndexDocument": "i.html"}},
        {"metadata": {"S3-Tag-a": "b", "Web-Index": "i.html"}},
    ),
    (
        "roles with ids",
        USER,
        {"roles": [{"role": "r", "project": "p"}, {"role": "r", "domain": "d"}]},
        {"roles": [{"role": "r", "project_id": "p"}, {"role": "r", "domain_id": "d"}], "domain_id": "default"},
    ),
    (
        "queues are actions",
        EVENTS,
        {"alarm_actions": ["http://a"], "alarm_queues": ["q 1"]},
        {"alarm_actions": ["http://a", "trust+zaqar://?queue_name=q+1"], "alarm_queues": None, "ok_actions": []},
    ),
    (
        "a rule apart",
        METRIC,
        {"threshold": 5},
        {
            "type": "gnocchi_resources_threshold",
            "gnocchi_resources_threshold_rule": {
                "metric": "my-metric",
                "resource_id": "my-resource-id",
                "resource_type": "my-resource-type",
                "threshold": 5,
            },
        },
    ),
    (
        "joined rules",
        COMPOSITE,
        {"composite_rule": {"operator": "and", "rules": [{"a": 1}, {"b": 2}]}},
        {"composite_rule": {"and": [{"a": 1}, {"b": 2}]}},
    ),
    (
        "ids of what is watched",
        HEALTH,
        {"pool": "p", "stack": "s", "autoscaling_group_id": "g"},
        {"loadbalancer_member_health_rule": {"pool_id": "p", "stack_id": "s", "autoscaling_group_id": "g"}},
    ),
    ("secrets by name", SECRETS, {"secrets": [{"name": "a", "ref": "r"}]}, {"secret_refs": {"a": "r"}}),
    ("parts of a pair", PAIR, {"public_key_ref": "r"}, {"type": "rsa", "secret_refs": {"public_key": "r"}}),
    ("servers of a zone", ZONE, {"type": "SECONDARY", "primaries": ["1.2.3.4"]}, {"masters": ["1.2.3.4"]}),
    (
        "servers of a zone by their old name",
        ZONE,
        {"type": "SECONDARY", "masters": ["1.2.3.4"]},
        {"masters": ["1.2.3.4"]},
    ),
    ("a queue's name is short", "OS::Zaqar::Queue", {"name": None}, {"name": "stack-it-abc"}),
    ("tasks without nulls", WORKFLOW, {"tasks": [TASK]}, {"tasks": [TASK]}),
    (
        "a workflow of a trigger",
        CRON,
        {"workflow": {"name": "w", "input": {"a": 1}}},
        {"workflow_name": "w", "workflow_input": {"a": 1}, "workflow": None},
    ),
    (
        "times of restarting",
        APP,
        {"restart_policy": "on-failure:3"},
        {"restart_policy": {"Name": "on-failure", "MaximumRetryCount": "3"}},
    ),
    (
        "always restarting",
        APP,
        {"restart_policy": "always"},
        {"restart_policy": {"Name": "always", "MaximumRetryCount": "0"}},
    ),
    (
        "volumes by the service's words",
        APP,
        {"mounts": [{"volume_id": "v", "mount_path": "/d"}]},
        {"mounts": [{"source": "v", "destination": "/d"}]},
    ),
    (
        "of a reservation what belongs to its kind",
        LEASE,
        {"reservations": [{"resource_type": "virtual:instance", "amount": 2, "min": 1}]},
        {"reservations": [{"resource_type": "virtual:instance", "amount": 2, "affinity": False}]},
    ),
    (
        "a host keeps its name",
        HOST,
        {"extra_capability": {"name": "x", "gpu": "1"}},
        {"name": "my-name", "extra_capability": {"gpu": "1"}},
    ),
    (
        "flavors of servers",
        DATABASES,
        {"instances": [{"flavor": "f", "volume_size": 2}]},
        {"instances": [{"flavor_id": "f", "volume_size": 2, "networks": []}]},
    ),
]


@pytest.mark.parametrize(("name", "given", "expected"), [each[1:] for each in SPECS], ids=[each[0] for each in SPECS])
def test_spec(name: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    kind = resource_type(name)
    spec = kind.spec(kind.complete(kind.check({**MINIMAL[name], **given})), "stack-it-abc")
    assert {key: spec.get(key) for key in expected} == expected


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (IMAGE, {"disk_format": "ami", "container_format": "bare"}, "must both be ami"),
    (IMAGE, {"members": ["p"]}, "needs the visibility shared"),
    (USER, {"roles": [{"role": "r"}]}, r"roles\[0\]: One of these properties is needed: project, domain"),
    (USER, {"roles": [{"role": "r", "project": "p", "domain": "d"}]}, "at the same time: project, domain"),
    (
        SECRETS,
        {"secrets": [{"name": "a", "ref": "r"}, {"name": "b", "ref": "r"}]},
        "secrets: each secret may be there once",
    ),
    (PAIR, {"public_key_ref": "r", "private_key_ref": "r"}, "each secret may be there once"),
    (SECRET, {"payload": None, "payload_content_type": "text/plain"}, "needs a payload"),
    (SECRET, {"payload_content_encoding": "base64"}, "needs the payload_content_type"),
    (SECRET, {"payload_content_type": "application/octet-stream"}, "needs payload_content_encoding"),
    (SECRET, {**OCTETS, "payload": "?"}, "payload: it is not written in base64"),
    (ORDER, {"bit_length": None}, "bit_length must be given for an order of type key"),
    (ORDER, {"pass_phrase": "x"}, "pass_phrase cannot be given for an order of a key"),
    (ORDER, {"type": "certificate", "algorithm": None, "bit_length": None, "profile": "x"}, "profile needs ca_id"),
    (CRON, {"pattern": None}, "pattern, first_time"),
    (DATABASE, {"users": [READER]}, r"users\[0\].databases: shop must be one of databases"),
    ("OS::Zaqar::Queue", {"name": "q" * 65}, "is out of range"),
    (ZONE, {"email": None}, "email is needed"),
    (ZONE, {"type": "SECONDARY"}, "primaries is needed"),
    (WORKFLOW, {"type": "reverse"}, "params: task_name is needed"),
    (WORKFLOW, {"tasks": [{"name": "t"}]}, r"tasks\[0\]: One of these properties is needed: workflow, action"),
    (WORKFLOW, {"tasks": [{**TASK, "workflow": "w"}]}, "at the same time: workflow, action"),
    (WORKFLOW, {"tasks": [{**TASK, "requires": ["a"]}]}, "for reverse workflows only"),
    (SHARE_NETWORK, {"neutron_network": "n"}, "neutron_network needs neutron_subnet"),
    (SHARE_NETWORK, {"nova_network": "n"}, "nova_network is not possible any more"),
    (TEMPLATE, {"coe": "swarm", "volume_driver": "cinder"}, "volume_driver must be rexray when coe is swarm"),
    (DATABASE, {"networks": [{"fixed_ip": "10.0.0.1"}]}, "One of these properties is needed: network, port"),
    (DATABASE, {"networks": [{"network": "n", "port": "p"}]}, "at the same time: network, port"),
    (DATABASES, {"instances": [{"flavor": "f", "volume_size": 1, "networks": [{}]}]}, r"instances\[0\].networks\[0\]"),
    (SUBSCRIPTION, {"subscriber": "ftp://x"}, "subscriber: a subscriber begins with one of http"),
    (APP, {"restart_policy": "sometimes"}, "restart_policy: it must be no"),
    (APP, {"mounts": [{"mount_path": "/d"}]}, "volume_id, volume_size"),
    (APP, {"mounts": [{"mount_path": "/d", "volume_id": "v", "volume_size": 1}]}, "at the same time"),
    (APP, {"networks": [{"port": "p", "fixed_ip": "10.0.0.1"}]}, "at the same time: fixed_ip, port"),
    (LEASE, {"start_date": "tomorrow"}, "does not match pattern"),
    (EVENTS, {"time_constraints": [{"name": "n", "start": "at noon", "duration": 5}]}, r"time_constraints\[0\].start"),
]


@pytest.mark.parametrize(("name", "given", "message"), REFUSED, ids=[f"{each[0]}: {each[2]}" for each in REFUSED])
def test_what_does_not_fit_together_is_refused(name: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(Rejected, match=message):
        resource_type(name).check({**MINIMAL[name], **given})


FITTING: list[tuple[str, dict[str, Any]]] = [
    (IMAGE, {"disk_format": UNKNOWN, "container_format": "ami"}),
    (IMAGE, {"members": ["p"], "visibility": UNKNOWN}),
    (USER, {"roles": [{"role": "r", "project": UNKNOWN}]}),
    (PAIR, {"public_key_ref": UNKNOWN, "private_key_ref": UNKNOWN}),
    (SECRET, {**OCTETS, "payload": UNKNOWN}),
    (SECRET, {**OCTETS, "payload": "c3dvcmQ="}),
    (ORDER, {"type": UNKNOWN, "pass_phrase": "x"}),
    (DATABASE, {"users": [READER], "databases": [{"name": "shop"}]}),
    (DATABASE, {"users": [READER], "databases": UNKNOWN}),
    (DATABASE, {"users": [READER], "databases": [UNKNOWN]}),
    (DATABASE, {"users": [READER], "databases": [{"name": UNKNOWN}]}),
    (WORKFLOW, {"type": "reverse", "params": UNKNOWN}),
    (WORKFLOW, {"tasks": [UNKNOWN]}),
    (TEMPLATE, {"coe": UNKNOWN, "volume_driver": "cinder"}),
]


@pytest.mark.parametrize(("name", "given"), FITTING)
def test_what_is_not_known_yet_may_fit(name: str, given: dict[str, Any]) -> None:
    resource_type(name).check({**MINIMAL[name], **given})


# -- looking -----------------------------------------------------------------------------------------------------------

DRIFTED: list[tuple[str, dict[str, Any], dict[str, Any], tuple[str, ...]]] = [
    (METRIC, {}, {"gnocchi_resources_threshold_rule": {"threshold": 9}}, ("threshold",)),
    (METRIC, {}, {"enabled": False}, ("enabled",)),
    (METRIC, {"ok_queues": ["q"]}, {"ok_actions": ["trust+zaqar://?queue_name=q"]}, ()),
    (COMPOSITE, {}, {"composite_rule": {"and": []}}, ("composite_rule",)),
    (
        SHARE,
        {"access_rules": [{"access_to": "10.0.0.1", "access_type": "ip"}]},
        {"access_rules": []},
        ("access_rules",),
    ),
    (USER, {"password": "secret"}, {"password": None}, ()),
    ("OS::Designate::RecordSet", {"records": ["1", "2"]}, {"records": ["2", "1"]}, ()),
    ("OS::Designate::RecordSet", {"ttl": 60}, {"ttl": 3600}, ("ttl",)),
    (ZONE, {"description": "ours"}, {"description": "theirs"}, ("description",)),
    (DATABASE, {"size": 2}, {"size": 4}, ()),
    (DATABASE, {"databases": [{"name": "shop"}]}, {"databases": [{"name": "shop"}]}, ()),
    (DATABASE, {"databases": [{"name": "shop"}]}, {"databases": []}, ("databases",)),
]


@pytest.mark.parametrize(("name", "given", "seen", "drifted"), DRIFTED)
def test_drift(name: str, given: dict[str, Any], seen: dict[str, Any], drifted: tuple[str, ...]) -> None:
    assert resource_type(name).judge(thing(name, given, seen), 200.0).drifted == drifted


JUDGED: list[tuple[str, dict[str, Any], dict[str, Any], Condition, Remedy]] = [
    (IMAGE, {}, {"status": "importing"}, Condition.PENDING, Remedy.WAIT),
    (IMAGE, {}, {"status": "killed"}, Condition.BROKEN, Remedy.RECREATE),
    (SHARE, {}, {"status": "error"}, Condition.BROKEN, Remedy.MANUAL),
    (DATABASE, {}, {"status": "failed"}, Condition.BROKEN, Remedy.MANUAL),
    (ZONE, {}, {"status": "PENDING"}, Condition.PENDING, Remedy.WAIT),
    (CLUSTER, {}, {"status": "UPDATE_IN_PROGRESS"}, Condition.PENDING, Remedy.WAIT),
    (CLUSTER, {}, {"status": "CREATE_FAILED"}, Condition.BROKEN, Remedy.RECREATE),
    (EXTERNAL, {}, {"status": "RUNNING"}, Condition.PENDING, Remedy.WAIT),
    (APP, {}, {"status": "paused"}, Condition.BROKEN, Remedy.OPERATE),
    (APP, {"interactive": True}, {"status": "Stopped"}, Condition.BROKEN, Remedy.OPERATE),
]


@pytest.mark.parametrize(("name", "given", "seen", "condition", "remedy"), JUDGED)
def test_what_a_status_means(
    name: str, given: dict[str, Any], seen: dict[str, Any], condition: Condition, remedy: Remedy
) -> None:
    verdict = resource_type(name).judge(thing(name, given, seen), 200.0)
    assert (verdict.condition, verdict.remedy) == (condition, remedy)


def test_a_container_may_stop_when_its_work_is_done() -> None:
    assert resource_type(APP).judge(thing(APP, {}, {"status": "Stopped"}), 200.0) == READY


def test_a_signed_url_as_a_query() -> None:
    seen = {"signature": "s", "expires": "e", "paths": ["/a", "/b"], "methods": ["GET"], "project": "p"}
    query = resource_type(SIGNED).attribute(thing(SIGNED, {"queue": "q"}, seen), "query_str")
    assert query == "signature=s&expires=e&paths=%2Fa%2C%2Fb&methods=GET&project_id=p&queue_name=q"


def test_inputs_that_replace_an_external_resource() -> None:
    kind = resource_type(EXTERNAL)
    given = {**MINIMAL[EXTERNAL], "replace_on_change_inputs": ["zone"]}
    before, after, other = (
        kind.complete(kind.check({**given, "input": {"zone": z, "size": s}})) for z, s in ("a1", "b1", "a2")
    )
    assert "input zone changed" in kind.replacement_reason(before, after, frozenset({"input"}))
    assert kind.replacement_reason(before, other, frozenset({"input"})) == ""


def test_a_database_is_never_shrunk_by_replacing_it() -> None:
    kind = resource_type(DATABASE)
    large, small = (kind.complete(kind.check({**MINIMAL[DATABASE], "size": size})) for size in (5, 2))
    with pytest.raises(Terminal, match="from 5 to 2 GiB"):
        kind.replacement_reason(large, small, frozenset({"size"}))


@pytest.mark.parametrize("url", ["http://objects.test:8080/v1/AUTH_p/box"])
def test_urls_of_a_container(url: str) -> None:
    kind, there = resource_type(CONTAINER), thing(CONTAINER, {}, {"url": url})
    found = [kind.attribute(there, name) for name in ("DomainName", "WebsiteURL", "RootURL")]
    assert found == ["objects.test", url, "http://objects.test:8080/v1/AUTH_p"]


# -- on a cloud --------------------------------------------------------------------------------------------------------
