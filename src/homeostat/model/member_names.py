"""Names in the stack of a group: members are named by numbers, a companion resource of member 3 is named `3-<name>`."""

COMPANION_MARK = "-"
"""Separates the name of a member from the rest of a companion's name."""


def companion_name(member: str, name: str) -> str:
    """Return the full name of a member's companion `name`."""
    return f"{member}{COMPANION_MARK}{name}"


def member_of_name(name: str) -> str:
    """Return the member that a companion belongs to; for any other name, the name itself."""
    member, dash, _ = name.partition(COMPANION_MARK)
    return member if dash and member.isdecimal() else name


def is_companion(name: str) -> bool:
    """Return whether a resource of this name is a companion of a member."""
    return member_of_name(name) != name
