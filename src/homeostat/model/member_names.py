"""Names in the stack of a group: members are named by numbers, what stands beside member 3 is named `3-<name>`."""

BESIDE = "-"
"""Between the name of a member and that of what stands beside it."""


def beside_name(member: str, name: str) -> str:
    """Return the name of the resource called `name` that stands beside a member."""
    return f"{member}{BESIDE}{name}"


def member_of_name(name: str) -> str:
    """Return the member that a resource of this name stands beside; the name itself where it is no such name."""
    member, dash, _ = name.partition(BESIDE)
    return member if dash and member.isdecimal() else name


def stands_beside(name: str) -> bool:
    """Return whether a resource of this name stands beside a member."""
    return member_of_name(name) != name
