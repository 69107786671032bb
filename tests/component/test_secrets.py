"""Secrets on every road through the service: nothing of them is found in what the database holds."""

from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy import Text, select, text, type_coerce

from homeostat.resources.registry import register
from homeostat.resources.secrets import is_secret, makes_secrets
from homeostat.services.pipeline.request import StackRequest
from homeostat.store import schema
from homeostat.store.encryption import key_rotation
from homeostat.store.encryption.encrypted_cells import Keyring
from tests.component.running import PROJECT, Service, double, group, handle, server, volume

CANARY = "canary-7f3a"
VERSION = "2018-08-31"
HIDDEN = {"pw": {"type": "string", "hidden": True}}
PW = {"get_param": "pw"}
NESTED = f"""
heat_template_version: {VERSION}
parameters:
  plain: {{type: string}}
resources:
  deep: {{type: OS::Heat::TestResource, properties: {{value: {{get_param: plain}}}}}}
outputs:
  out: {{value: {{get_attr: [deep, output]}}}}
"""


@pytest.fixture
def service() -> Service:
    made = Service()
    made.db.use_keys(Keyring([b"k" * 64]))
    return made


def create(service: Service, resources: Mapping[str, Any], **more: Any) -> str:
    parameters = more.pop("parameters", None)
    sections = {"parameters": more.pop("declared", {}), "outputs": more.pop("outputs", {})}
    whole = {"heat_template_version": VERSION, "resources": resources, **{k: v for k, v in sections.items() if v}}
    intent = StackRequest(whole, parameters or {}, more.pop("environment", {}), more.pop("files", {}), True, **more)
    return service.stack_service.create(PROJECT, None, "web", intent)


def everything(service: Service) -> str:
    with service.db.read() as tx:
        return "\n".join(
            str(row)
            for table in schema.metadata.sorted_tables
            for row in tx.execute(select(*(type_coerce(each, Text) for each in table.c)))
        )


ROADS: dict[str, dict[str, Any]] = {
    "a hidden parameter": {
        "resources": {"a": double(value=PW), "b": double(value={"get_attr": ["a", "output"]})},
        "declared": HIDDEN,
        "parameters": {"pw": CANARY},
    },
    "a hidden default": {"resources": {"a": double(value=PW)}, "declared": {"pw": {**HIDDEN["pw"], "default": CANARY}}},
    "the environment": {
        "resources": {"a": double(value=PW)},
        "declared": HIDDEN,
        "environment": {"parameters": {"pw": CANARY}},
    },
    "defaults of parameters": {
        "resources": {"a": double(value=PW)},
        "declared": HIDDEN,
        "environment": {"parameter_defaults": {"pw": CANARY}},
    },
    "a parameter that is encrypted by name": {
        "resources": {"a": double(value=PW)},
        "declared": {"pw": {"type": "string"}},
        "parameters": {"pw": CANARY},
        "environment": {"encrypted_param_names": ["pw"]},
    },
    "functions": {
        "resources": {"a": double(value={"list_join": ["-", [PW, "x"]]}), "b": server(metadata={"k": PW})},
        "declared": HIDDEN,
        "parameters": {"pw": CANARY},
    },
    "a nested stack, and its output": {
        "resources": {
            "inner": {"type": "inner.yaml", "properties": {"plain": PW}},
            "out": double(value={"get_attr": ["inner", "out"]}),
        },
        "declared": HIDDEN,
        "parameters": {"pw": CANARY},
        "files": {"inner.yaml": NESTED},
    },
    "a secret that a nested stack has as default": {
        "resources": {"inner": {"type": "inner.yaml"}, "out": double(value={"get_attr": ["inner", "out"]})},
        "files": {"inner.yaml": NESTED.replace("{type: string}", f"{{type: string, hidden: true, default: {CANARY}}}")},
    },
    "members of a group": {
        "resources": {"group": group(2, double(value={"list_join": ["", [PW, "%index%"]]}))},
        "declared": HIDDEN,
        "parameters": {"pw": CANARY},
    },
    "user data and metadata": {
        "resources": {
            "s": {
                **server(user_data={"str_replace": {"template": "p=$p", "params": {"$p": PW}}}),
                "metadata": {"m": PW},
            }
        },
        "declared": HIDDEN,
        "parameters": {"pw": CANARY},
    },
    "a file": {
        "resources": {"s": server(user_data={"get_file": "boot.sh"}, admin_pass=CANARY)},
        "files": {"boot.sh": f"echo {CANARY}"},
    },
    "a software config and a deployment": {
        "resources": {
            "config": {
                "type": "OS::Heat::SoftwareConfig",
                "properties": {"config": "x", "inputs": [{"name": "i", "default": PW}]},
            },
            "s": server(user_data_format="SOFTWARE_CONFIG"),
            "d": {
                "type": "OS::Heat::SoftwareDeployment",
                "properties": {
                    "config": {"get_resource": "config"},
                    "server": {"get_resource": "s"},
                    "input_values": {"i": PW},
                    "signal_transport": "NO_SIGNAL",
                },
            },
        },
        "declared": HIDDEN,
        "parameters": {"pw": CANARY},
    },
}


@pytest.mark.parametrize("road", ROADS)
def test_no_secret_is_found_in_the_database(service: Service, road: str) -> None:
    stack_id = create(service, **ROADS[road])
    service.live(130.0)
    assert service.state(stack_id) == "CREATE_COMPLETE", service.stack(stack_id).reason
    assert CANARY not in everything(service)
    service.stack_service.update(
        stack_id, StackRequest({"heat_template_version": VERSION, "resources": {"c": volume()}})
    )
    service.rest()
    assert CANARY not in everything(service)


def test_settings_of_event_sinks_are_encrypted(service: Service) -> None:
    sink = {"type": "webhook", "url": f"https://hooks.test/{CANARY}", "secret": CANARY}
    create(service, {"v": volume()}, environment={"event_sinks": [sink]})
    service.work()
    assert CANARY not in everything(service)


def made_by(service: Service, stack_id: str, name: str, attribute: str) -> str:
    found = service.attribute(stack_id, name, attribute)
    assert len(found) > 7
    return str(found)


def test_no_secret_that_a_resource_makes_is_found(service: Service) -> None:
    resources = {
        "word": {"type": "OS::Heat::RandomString", "properties": {"length": 24}},
        "reader": double(value={"get_attr": ["word", "value"]}),
        "key": {"type": "OS::Nova::KeyPair", "properties": {"name": "k", "save_private_key": True}},
        "handle": handle(),
    }
    stack_id = create(service, resources)
    service.rest()
    service.live(130.0)
    secrets = [
        made_by(service, stack_id, "word", "value"),
        made_by(service, stack_id, "key", "private_key"),
        made_by(service, stack_id, "handle", "token"),
    ]
    stored = everything(service)
    assert [each for each in secrets if each in stored] == []


def test_what_is_signalled_is_encrypted(service: Service) -> None:
    stack_id = create(service, {"handle": handle()})
    service.rest()
    service.signal(stack_id, "handle", {"id": "1", "data": CANARY})
    assert CANARY not in everything(service)


# -- what need not be encrypted ----------------------------------------------------------------------------------------


def encrypted_rows(service: Service) -> list[str]:
    """Names of resources whose properties or observations are encrypted."""
    with service.db.read() as tx:
        one = tx.execute(text("SELECT name FROM resource WHERE properties LIKE 'enc:%'")).scalars().all()
        other = tx.execute(text("SELECT resource_name FROM resource_observed WHERE object LIKE 'enc:%'"))
        return sorted({*one, *other.scalars()})


def test_stacks_without_secrets_do_not_pay(service: Service) -> None:
    files = {"inner.yaml": NESTED}
    inner = {"type": "inner.yaml", "properties": {"plain": "x"}}
    stack_id = create(service, {"v": volume(), "g": group(2), "inner": inner}, files=files)
    service.live(130.0)
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert [each.secret for each in service.stacks()] == [False] * 3
    assert encrypted_rows(service) == []


def test_a_secret_that_comes_later_encrypts_the_whole_tree(service: Service) -> None:
    group_of = {"group": group(2, double(value="x"))}
    stack_id = create(service, group_of)
    service.rest()
    whole = {
        "heat_template_version": VERSION,
        "parameters": HIDDEN,
        "resources": {"group": group(3, double(value=PW))},
    }
    service.stack_service.update(stack_id, StackRequest(whole, {"pw": CANARY}))
    service.rest()
    assert all(each.secret for each in service.stacks())
    assert CANARY not in everything(service)
    assert {"0", "1", "2"} <= set(encrypted_rows(service))
    service.stack_service.update(stack_id, StackRequest({"heat_template_version": VERSION, "resources": group_of}))
    service.rest()
    assert all(each.secret for each in service.stacks()), "old values may still be in rows that are on their way out"


def test_a_stack_that_was_never_checked_is_encrypted(service: Service) -> None:
    """As for stacks made by a version that does not know better."""
    stack_id = service.begin({"v": volume()})
    with service.db.write() as tx:
        tx.execute(schema.stack.update().values(secret=None))
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert encrypted_rows(service) == ["v"]


def test_drift_is_seen_in_encrypted_rows(service: Service) -> None:
    stack_id = create(service, {"v": volume(name=PW, size=1)}, declared=HIDDEN, parameters={"pw": CANARY})
    service.rest()
    (handle_,) = service.cloud.things("volume")
    quiet = service.story(stack_id)
    service.live(200.0)
    assert service.story(stack_id) == quiet, "what is the same is no drift"
    service.cloud.things("volume")[handle_]["name"] = "changed by hand"
    service.live(200.0)
    assert service.cloud.things("volume")[handle_]["name"] == CANARY


# -- types -------------------------------------------------------------------------------------------------------------


def test_types_whose_attributes_are_secret_are_known() -> None:
    known = register()
    silent = {
        name
        for name, kind in known.types.items()
        if not kind.secretive and (kind.creation_only_fields or any(map(is_secret, kind.attributes)))
    }
    assert sorted(silent) == []
    assert not makes_secrets(["OS::Cinder::Volume", "OS::Nova::Server", "OS::Heat::ResourceGroup"])
    assert makes_secrets(["OS::Cinder::Volume", "OS::Heat::RandomString"])


def test_all_that_is_encryptable_is_known(service: Service) -> None:
    """A column that holds plain data of users is encrypted, or has a reason not to be."""
    create(service, {"v": volume()})
    found = {f"{table.name}.{column.name}" for table, columns in key_rotation.encryptable() for column in columns}
    json = {
        f"{table.name}.{column.name}"
        for table in schema.metadata.sorted_tables
        for column in table.c
        if isinstance(column.type, schema.Json)
    }
    assert json - found == {
        "stack.exceptions",  # switches
        "stack.healing",  # a policy and a share
        "stack.cooldown",  # a time, and what the template says of a size
        "stack.lock",  # who, why, until when
        "snapshot_part.place",  # names of resources
        "stack.snapshot",  # ids and names
        "stack.tags",  # listed by
        "revision.files",  # names and digests
        "resource.requires",  # keys of rows
        "resource.hooks",
        "resource.marks",
        "node.data",  # names of a zone and a region
        "cluster_policy.state",  # names of a cluster, a server group and regions, ids, and a number
        "node_health.health",  # words of statuses, and why URLs did not answer
        "vantage_look.found",  # why URLs did not answer
        "rollout.settings",  # numbers and words of the template, and ids
        "rollout.first",  # handles
        "rollout.zones",  # names of zones
    }
