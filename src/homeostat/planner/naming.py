"""Names that things get in the cloud (reference/heat/engine-semantics.md section 7)."""

NAME_LIMIT = 63
"""Short enough for host names."""


def physical_name(stack_name: str, resource: str, key: str) -> str:
    """`<stack>-<resource>-<key>`; over the limit, the first two characters, a dash, and the end."""
    name = f"{stack_name}-{resource}-{key}"
    return name if len(name) <= NAME_LIMIT else f"{name[:2]}-{name[-(NAME_LIMIT - 3) :]}"


def token(key: str, attempt: int) -> str:
    """What the cloud's object carries to be found again: one for each creation that is tried (CV18)."""
    return f"{key}-{attempt}"


def snapshot_token(key: str, revision: int) -> str:
    """What the cloud's snapshot of a thing carries that is made for one of its whole stack."""
    return f"{key}-r{revision}"
