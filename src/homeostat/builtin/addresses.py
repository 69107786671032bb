"""Names and URLs of records: access keys, ARNs, and the paths of signed URLs."""

from homeostat.store.builtin.records import Owner

VERBS = {"PUT": "waitcondition", "POST": "signal", "GET": "metadata"}
"""HTTP method of a signed URL -> the beginning of its path."""


def arn(owner: Owner) -> str:
    """Return the ARN of a resource."""
    return f"{stack_arn(owner.project, owner.stack_name, owner.stack_id)}/resources/{owner.name}"


def stack_arn(project: str, name: str, stack_id: str) -> str:
    """Return the ARN of a stack."""
    return f"arn:openstack:heat::{project}:stacks/{name}/{stack_id}"


def access_key(record_id: str) -> str:
    """Return the access key of a record: its id without dashes."""
    return record_id.replace("-", "")
