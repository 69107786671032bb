"""Names in the stack of a group: members are named by numbers, a companion resource of member 3 is named `3-<name>`."""

BESIDE = "-"
"""Between the name of a member and that of its companion."""


def companion_name(member: str, name: str) -> str:
    """Return the name of the companion called `name` of a member."""
    return f"{member}{BESIDE}{name}"


def member_of_name(name: str) -> str:
    """Return the member of the companion of this name; the name itself if it is not that of a companion."""
    member, dash, _ = name.partition(BESIDE)
    return member if dash and member.isdecimal() else name


def stands_beside(name: str) -> bool:
    """Return whether this is the name of a companion."""
    return member_of_name(name) != name
