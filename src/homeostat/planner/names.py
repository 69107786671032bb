"""Names (as in Heat) and tokens of things in the cloud."""

from homeostat.resources.base import NAME_LIMIT, shortened


def physical_name(stack_name: str, resource: str, key: str, limit: int = NAME_LIMIT) -> str:
    """Return `<stack>-<resource>-<key>`; above the limit, its first two characters, a dash, and its end."""
    return shortened(f"{stack_name}-{resource}-{key}", limit)


def token(key: str, attempt: int) -> str:
    """Return the token by which a created thing is found again, unique for each attempt (CV18)."""
    return f"{key}-{attempt}"


def snapshot_token(key: str, revision: int) -> str:
    """Return the token of the cloud's snapshot of a thing within a snapshot of the whole stack."""
    return f"{key}-r{revision}"
