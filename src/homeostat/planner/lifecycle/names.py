"""Names that things get in the cloud (reference/heat/engine-semantics.md section 7)."""

from homeostat.resources.base import NAME_LIMIT, shortened


def physical_name(stack_name: str, resource: str, key: str, limit: int = NAME_LIMIT) -> str:
    """`<stack>-<resource>-<key>`; over the limit, the first two characters, a dash, and the end."""
    return shortened(f"{stack_name}-{resource}-{key}", limit)


def token(key: str, attempt: int) -> str:
    """What the cloud's object carries to be found again: one for each creation that is tried (CV18)."""
    return f"{key}-{attempt}"


def snapshot_token(key: str, revision: int) -> str:
    """What the cloud's snapshot of a thing carries that is made for one of its whole stack."""
    return f"{key}-r{revision}"
