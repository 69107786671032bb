"""Kinds that the service itself provides, as no cloud has them (`builtin.cloud`)."""

from homeostat.kinds.base import (
    ANY,
    BOOLEAN,
    INTEGER,
    LIST,
    MAP,
    TEXT,
    Field,
    FieldType,
    Kind,
    Statuses,
    mapping,
)
from homeostat.model.observed import Remedy

SIGNAL_HANDLE = Kind(
    name="signal_handle",
    description="A handle that servers signal.",
    fixed={
        "name": TEXT,
        "form": Field(FieldType.TEXT, "native|aws"),
        "transport": TEXT,
    },
    reported={
        "token": TEXT,
        "endpoint": TEXT,
        "url": TEXT,
        "login": MAP,
    },
    operations={"adopt": ("With {token, spec, id, status, metadata, data}: makes the record of an adopted resource.")},
)
WAIT_CONDITION = Kind(
    name="wait_condition",
    description="A condition that is met when its handle was signalled often enough.",
    fixed={
        "name": TEXT,
        "handle": TEXT,
        "timeout": INTEGER,
    },
    mutable={
        "count": INTEGER,
    },
    reported={
        "heard": Field(FieldType.MAP, "", "what is counted of the signals that came"),
        "met": Field(FieldType.BOOLEAN, "", "before it was adopted"),
    },
    operations={"adopt": ("With {token, spec, id, status, metadata, data}: makes the record of an adopted resource.")},
)
SOFTWARE_CONFIG = Kind(
    name="software_config",
    description="A script or document for servers.",
    fixed={
        "name": TEXT,
        "group": TEXT,
        "config": ANY,
        "options": MAP,
        "inputs": LIST,
        "outputs": LIST,
        "parts": LIST,
    },
    operations={"adopt": ("With {token, spec, id, status, metadata, data}: makes the record of an adopted resource.")},
)
SOFTWARE_DEPLOYMENT = Kind(
    name="software_deployment",
    description="A config applied to a server, which may signal outputs.",
    fixed={
        "server_id": TEXT,
        "transport": TEXT,
        "form": TEXT,
        "input_key": TEXT,
        "strict": BOOLEAN,
    },
    mutable={
        "name": TEXT,
        "config": TEXT,
        "input_values": MAP,
        "actions": LIST,
    },
    reported={
        "config_id": Field(FieldType.TEXT, "", "the derived one"),
        "output_values": MAP,
        "action": TEXT,
        "status": TEXT,
        "status_reason": TEXT,
        "replace_on_change": mapping("{input: value}"),
    },
    statuses=Statuses(ready=frozenset({"complete"}), busy=frozenset({"in_progress"}), broken={"failed": Remedy.MANUAL}),
    operations={
        "suspend": "",
        "resume": "",
        "adopt": ("With {token, spec, id, status, metadata, data}: makes the record of an adopted resource."),
    },
)
HEALTH_POLICY = Kind(
    name="health_policy",
    description="A health policy that holds for a group, or a server, of a template.",
    fixed={
        "name": TEXT,
    },
    mutable={
        "target": TEXT,
        "detection": MAP,
        "recovery": MAP,
        "enabled": BOOLEAN,
    },
    reported={
        "holds_for": Field(FieldType.TEXT, "", "name of the resource"),
    },
)
SCALING_POLICY = Kind(
    name="scaling_policy",
    description="A policy that resizes a group when it is signalled.",
    fixed={
        "name": TEXT,
        "auto_scaling_group_id": TEXT,
        "AutoScalingGroupName": TEXT,
    },
    mutable={
        "scaling_adjustment": INTEGER,
        "adjustment_type": TEXT,
        "cooldown": INTEGER,
        "min_adjustment_step": INTEGER,
        "ScalingAdjustment": INTEGER,
        "AdjustmentType": TEXT,
        "Cooldown": INTEGER,
        "MinAdjustmentStep": INTEGER,
    },
    reported={
        "url": TEXT,
        "endpoint": TEXT,
    },
    operations={"adopt": ("With {token, spec, id, status, metadata, data}: makes the record of an adopted resource.")},
)
IAM_USER = Kind(
    name="iam_user",
    description="A user of the CloudFormation API, who may describe resources of this stack.",
    fixed={
        "name": TEXT,
        "policies": LIST,
    },
    operations={"adopt": ("With {token, spec, id, status, metadata, data}: makes the record of an adopted resource.")},
)
ACCESS_KEY = Kind(
    name="access_key",
    description="A key of a user of the CloudFormation API.",
    fixed={
        "name": TEXT,
        "user": TEXT,
    },
    reported={
        "access_key": TEXT,
        "secret_key": TEXT,
    },
    operations={"adopt": ("With {token, spec, id, status, metadata, data}: makes the record of an adopted resource.")},
)
DEPLOYED_SERVER = Kind(
    name="deployed_server",
    description="A server that no cloud here has made, for deployments: its operator gives its agent the settings.",
    mutable={
        "name": TEXT,
        "transport": TEXT,
    },
    reported={
        "os_collect_config": MAP,
    },
    operations={"adopt": ("With {token, spec, id, status, metadata, data}: makes the record of an adopted resource.")},
)

KINDS = (
    SIGNAL_HANDLE,
    WAIT_CONDITION,
    SOFTWARE_CONFIG,
    SOFTWARE_DEPLOYMENT,
    SCALING_POLICY,
    HEALTH_POLICY,
    IAM_USER,
    ACCESS_KEY,
    DEPLOYED_SERVER,
)
