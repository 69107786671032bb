"""Regions: services with the Orchestration API v1, with the addresses and logins given by the operator."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

OWN = "default"
"""Region of templates that name none: this service itself."""


@dataclass(frozen=True, slots=True)
class Login:
    """Login for HTTP basic authentication.

    Attributes:
        project: The only project that it is for; "" for all.
    """

    user: str
    password: str = field(repr=False)
    project: str = ""


@dataclass(frozen=True, slots=True)
class Region:
    """One region.

    Attributes:
        url: URL of the API, without version.
        logins: Logins for it; empty where requests carry tokens, or need no authentication.
    """

    name: str
    url: str
    logins: Sequence[Login] = ()

    def login_for(self, project: str) -> tuple[str, str] | None:
        fitting = [login for login in self.logins if login.project in (project, "")]
        best = max(fitting, key=lambda login: login.project, default=None)
        return None if best is None else (best.user, best.password)


REGION = re.compile(r"[A-Za-z0-9_.-]+")


def read_regions(arguments: Sequence[str], logins: Mapping[str, Sequence[Login]]) -> list[Region]:
    """Read regions, each given as `NAME=URL`.

    Raises:
        ValueError: An entry is wrong; the message names it.
    """
    regions = []
    for argument in arguments:
        name, equals, url = argument.partition("=")
        if not equals or not REGION.fullmatch(name) or not url.startswith(("http://", "https://")):
            raise ValueError(f"{argument}: write NAME=URL, such as east=https://east.example.org:8004")
        regions.append(Region(name, url.rstrip("/").removesuffix("/v1"), logins.get(name, ())))
    strange = logins.keys() - {region.name for region in regions}
    if strange:
        raise ValueError(f"there are logins for a region that is not known: {', '.join(sorted(strange))}")
    return regions


def read_logins(text: str) -> dict[str, list[Login]]:
    """Read logins from lines `REGION USER:PASSWORD [PROJECT]`; empty lines and comments (#) are ignored.

    Returns:
        Region -> its logins.

    Raises:
        ValueError: A line is wrong; the message names it.
    """
    logins: dict[str, list[Login]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        parts = line.split()
        if not parts or parts[0].startswith("#"):
            continue
        if len(parts) not in (2, 3) or ":" not in parts[1]:
            raise ValueError(f"line {number}: write REGION USER:PASSWORD or REGION USER:PASSWORD PROJECT")
        user, _, password = parts[1].partition(":")
        logins.setdefault(parts[0], []).append(Login(user, password, *parts[2:]))
    return logins
