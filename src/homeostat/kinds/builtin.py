"""Kinds that the service itself provides, as no cloud has them (`builtin.cloud`)."""

from homeostat.kinds.base import ANY, BOOLEAN, INTEGER, LIST, MAP, TEXT, Field, FieldType, Kind, Statuses, mapping
from homeostat.model.observed import Remedy

ADOPT = {"adopt": "With {token, spec, id, status, metadata, data}: makes the record of an adopted resource."}

SOFTWARE_CONFIG = Kind(
    "software_config",
    "A script or document for servers.",
    extra_fixed={"name": TEXT, "config": ANY},
    operations=ADOPT,
)
SOFTWARE_DEPLOYMENT = Kind(
    "software_deployment",
    "A config applied to a server, which may signal outputs.",
    extra_fixed={"server_id": TEXT, "transport": TEXT, "form": TEXT, "strict": BOOLEAN},
    reported={
        "config_id": Field(FieldType.TEXT, "", "the derived one"),
        "output_values": MAP,
        "action": TEXT,
        "status": TEXT,
        "status_reason": TEXT,
        "replace_on_change": mapping("{input: value}"),
    },
    statuses=Statuses(ready=frozenset({"complete"}), busy=frozenset({"in_progress"}), broken={"failed": Remedy.MANUAL}),
    operations={"suspend": "", "resume": "", **ADOPT},
)

KINDS = (
    Kind(
        "signal_handle",
        "A handle that servers signal.",
        extra_fixed={"name": TEXT, "form": Field(FieldType.TEXT, "native|aws"), "transport": TEXT},
        reported={"token": TEXT, "endpoint": TEXT, "url": TEXT, "login": MAP},
        operations=ADOPT,
    ),
    Kind(
        "wait_condition",
        "A condition that is met when its handle was signalled often enough.",
        extra_fixed={"name": TEXT, "timeout": INTEGER},
        reported={
            "heard": mapping("", "what is counted of the signals that came"),
            "met": Field(FieldType.BOOLEAN, "", "before it was adopted"),
        },
        operations=ADOPT,
    ),
    SOFTWARE_CONFIG,
    SOFTWARE_DEPLOYMENT,
    Kind(
        "scaling_policy",
        "A policy that resizes a group when it is signalled.",
        extra_fixed={"name": TEXT, "AutoScalingGroupName": TEXT},
        extra_mutable={
            "scaling_adjustment": INTEGER,
            "cooldown": INTEGER,
            "ScalingAdjustment": INTEGER,
            "AdjustmentType": TEXT,
            "Cooldown": INTEGER,
            "MinAdjustmentStep": INTEGER,
        },
        reported={"url": TEXT, "endpoint": TEXT},
        operations=ADOPT,
    ),
    Kind(
        "health_policy",
        "A health policy that holds for a group, or a server, of a template.",
        extra_fixed={"name": TEXT},
        reported={"holds_for": Field(FieldType.TEXT, "", "name of the resource")},
    ),
    Kind(
        "iam_user",
        "A user of the CloudFormation API, who may describe resources of this stack.",
        extra_fixed={"name": TEXT, "policies": LIST},
        operations=ADOPT,
    ),
    Kind(
        "access_key",
        "A key of a user of the CloudFormation API.",
        extra_fixed={"name": TEXT, "user": TEXT},
        reported={"access_key": TEXT, "secret_key": TEXT},
        operations=ADOPT,
    ),
    Kind(
        "deployed_server",
        "A server that no cloud here has made, for deployments: its operator gives its agent the settings.",
        extra_mutable={"transport": TEXT},
        reported={"os_collect_config": MAP},
        operations=ADOPT,
    ),
)
