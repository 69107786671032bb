"""Names (as in Heat) and tokens that things get in the cloud."""

from homeostat.resources.base import NAME_LIMIT, shortened


def physical_name(stack_name: str, resource: str, key: str, limit: int = NAME_LIMIT) -> str:
    """Return `<stack>-<resource>-<key>`; over the limit, the first two characters, a dash, and the end of it."""
    return shortened(f"{stack_name}-{resource}-{key}", limit)


def token(key: str, attempt: int) -> str:
    """Return the token by which a created thing is found again: one for each creation that is tried (CV18)."""
    return f"{key}-{attempt}"


def snapshot_token(key: str, revision: int) -> str:
    """Return the token of the cloud's snapshot of a thing that is a part of a snapshot of the whole stack."""
    return f"{key}-r{revision}"
