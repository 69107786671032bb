"""Meaning of the answers of OpenStack's services: a table by service, method, status code and message.

The first matching rule counts; rules of a service precede the general ones. The documentation shows the table.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Any

from homeostat.model.errors import HomeostatError, Terminal, Transient, Uncertain

WAITS = frozenset({413, 429, 503})
"""Status codes whose answers may have a `Retry-After`."""
FORBIDDEN = 403
READS = frozenset({"GET", "HEAD"})
MESSAGE_MAX = 1000
"""Maximum length of a service's message in an error, in characters."""


class Missing(HomeostatError):
    """The service answered that the object does not exist."""


class Forbidden(Transient):
    """The stack's owner is not allowed to read the object."""


class Unauthenticated(HomeostatError):
    """The service does not accept the token."""


class Meaning(Enum):
    """Meaning of an answer to convergence."""

    MISSING = "missing"
    UNAUTHENTICATED = "unauthenticated"
    TRANSIENT = "transient"
    TERMINAL = "terminal"
    UNCERTAIN = "uncertain"


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the table.

    Attributes:
        codes: HTTP status codes.
        meaning: Meaning of such an answer.
        why: Explanation for the documentation.
        service: Type of the service in the catalogue; "" for all.
        methods: HTTP methods; empty for all.
        words: Pattern in the service's message; "" for any message.
        remedy: Advice to the user, if the service's message gives none.
    """

    codes: frozenset[int]
    meaning: Meaning
    why: str
    service: str = ""
    methods: frozenset[str] = frozenset()
    words: str = ""
    remedy: str = ""

    def fits(self, service: str, method: str, code: int, message: str) -> bool:
        return (
            code in self.codes
            and self.service in ("", service)
            and (not self.methods or method in self.methods)
            and (not self.words or re.search(self.words, message, re.IGNORECASE) is not None)
        )


def _rule(codes: Iterable[int], meaning: Meaning, why: str, **more: Any) -> Rule:
    methods = frozenset(str(more.pop("methods", "")).split())
    return Rule(frozenset(codes), meaning, why, methods=methods, **more)


ALL_5XX = range(500, 600)
RULES: tuple[Rule, ...] = (
    _rule([401], Meaning.UNAUTHENTICATED, "the token has expired or was revoked: a new one is requested once"),
    _rule(
        [403, 409, 413],
        Meaning.TERMINAL,
        "a quota is used up: only another quota or a smaller request helps; Compute answers 403, Networking 409, Block "
        "Storage 413",
        methods="POST PUT PATCH DELETE",
        words=r"quota|OverLimit|VolumeLimitExceeded|SnapshotLimitExceeded|exceed\w* .*allowed",
    ),
    _rule(
        [400],
        Meaning.TRANSIENT,
        "the volume is attached to a server already, or changing: Compute passes on what Block Storage says",
        service="compute",
        methods="POST DELETE",
        words=r"Invalid volume: .*(already attached|status must be|is in use)",
    ),
    _rule(
        [400],
        Meaning.TRANSIENT,
        "a volume type or a QoS specification is in use",
        service="block-storage",
        methods="POST PUT DELETE",
        words=r"(still|currently|type) in use",
    ),
    _rule(
        [400],
        Meaning.TRANSIENT,
        "the volume is attached, or busy with something that ends by itself",
        service="block-storage",
        methods="POST PUT DELETE",
        words=r"status must be|must be available|must not be migrating|still has|is attached|dependent",
    ),
    _rule(
        [404],
        Meaning.TRANSIENT,
        "no router leads from the port to the external network yet",
        service="network",
        methods="POST PUT",
        words="is not reachable from subnet",
    ),
    _rule(
        [400],
        Meaning.TRANSIENT,
        "the external network has no address to give now",
        service="network",
        methods="POST PUT",
        words="Unable to find any IP address on external network",
    ),
    _rule(
        [400, 409, 500],
        Meaning.TERMINAL,
        "the subnet pool has no room for the subnet, which was not made",
        service="network",
        methods="POST",
        words="Insufficient prefix space",
        remedy="give the pool more prefixes, or ask for a smaller subnet",
    ),
    _rule(
        [403],
        Meaning.TRANSIENT,
        "a server, a share or a bare metal node has the port still, or its service has not let go of it yet",
        service="network",
        methods="DELETE",
        words="rule:delete_port is disallowed",
        remedy="a port can be deleted once its device_owner is empty: detach it from what has it",
    ),
    _rule(
        [409],
        Meaning.TERMINAL,
        "the request contradicts itself, or an existing object",
        service="network",
        methods="POST PUT",
        words="conflicts with allocation pool|overlapping allocation pools|must have unique prefixes|overlaps another|"
        "Unable to add the rule with value|default QoS policy exists",
    ),
    _rule(
        [400],
        Meaning.TRANSIENT,
        "the load balancer still has listeners or pools, which may be going",
        service="load-balancer",
        methods="DELETE",
        words="it has children",
        remedy="if it stays so, others have added listeners or pools to it, which only they or you can delete",
    ),
    _rule(
        [409],
        Meaning.TERMINAL,
        "another thing of the load balancer has the place already, or there are too many",
        service="load-balancer",
        methods="POST PUT",
        words=r"already (using|has|in use|an entity)|too many rules",
    ),
    _rule(
        [400],
        Meaning.TRANSIENT,
        "the zone still has zones below it, which may be going",
        service="dns",
        methods="DELETE",
        words="subzone",
    ),
    _rule(
        [400],
        Meaning.MISSING,
        "a malformed id belongs to no object",
        service="dns",
        methods="GET PUT PATCH DELETE",
        words="Invalid UUID",
    ),
    _rule(
        [409],
        Meaning.TERMINAL,
        "another domain, project, user, group, role or region has the name already",
        service="identity",
        methods="POST PUT PATCH",
        words="conflict occurred",
    ),
    _rule(
        [403],
        Meaning.TERMINAL,
        "the stack's owner has no role that allows it: things of Identity are for administrators",
        methods="POST PUT PATCH DELETE",
        words="not authorized|disallowed by policy|polic(y|ies) (doesn't|does not) allow",
        remedy="the owner of the stack needs a role that allows it, such as admin",
    ),
    _rule(
        [400, 403],
        Meaning.TRANSIENT,
        "the share or the type is in use, or busy with something that ends by itself; so is a rule that is going",
        service="shared-file-system",
        methods="POST PUT DELETE",
        words=r"status must be|dependent|still in use|assigned to share net|be applied while|Share access \S+ exists",
    ),
    _rule(
        [400],
        Meaning.TRANSIENT,
        "the workflow still has triggers, which may be going",
        service="workflow",
        methods="DELETE",
        words="has (cron|event) triggers",
    ),
    _rule(
        [409],
        Meaning.TERMINAL,
        "the host can be reserved already",
        service="reservation",
        methods="POST",
        words="creating resource provider",
        remedy="remove it from the hosts that can be reserved, or from the template",
    ),
    _rule(
        [400, 500],
        Meaning.TERMINAL,
        "not enough hosts are free at that time: only another specification helps",
        service="reservation",
        methods="POST",
        words="Not enough",
    ),
    _rule(
        [400],
        Meaning.TRANSIENT,
        "the cluster is going: its groups of nodes are gone already, without which it is not shown",
        service="container-infrastructure-management",
        methods="GET",
        words="Invalid input for field/attribute",
    ),
    _rule(
        [400],
        Meaning.TRANSIENT,
        "the cluster template still has clusters, which may be going",
        service="container-infrastructure-management",
        methods="DELETE",
        words="referenced by one or multiple clusters",
    ),
    _rule([409], Meaning.TERMINAL, "the container is not empty", service="object-store", methods="DELETE"),
    _rule(
        [409],
        Meaning.TERMINAL,
        "the server is locked, or in a state that a user chose and that does not end by itself; or it has to be said "
        "on which of several networks it shall be",
        service="compute",
        methods="POST PUT DELETE",
        words=r"is locked|in vm_state (?!active|building|resized)|Multiple possible networks",
    ),
    _rule(
        [400],
        Meaning.TRANSIENT,
        "the image is still being saved, or the resize just being confirmed",
        service="compute",
        methods="POST",
        words=r"Image \S+ is not active|has not been resized",
    ),
    _rule(
        [404, 410],
        Meaning.MISSING,
        "the thing does not exist; in the answer to a creation: something that the creation names, so only another "
        "specification helps",
    ),
    _rule([408, 425, 429], Meaning.TRANSIENT, "too many requests: `Retry-After` says when to ask again"),
    _rule([413], Meaning.TRANSIENT, "older services limit the rate of requests with 413"),
    _rule(
        [409],
        Meaning.TERMINAL,
        "another thing has the name or the address already",
        methods="POST PUT PATCH",
        words=r"already (exists?|in use by|been allocated|attached|have)|Key pair .* exists|duplicate|is not unique",
    ),
    _rule([409], Meaning.TRANSIENT, "the thing is in use, locked or changing: that will end"),
    _rule([501], Meaning.TERMINAL, "the service, or the provider behind it, has no such feature"),
    _rule([403], Meaning.TRANSIENT, "the stack's owner may not look now; roles can come back", methods="GET HEAD"),
    _rule(ALL_5XX, Meaning.TRANSIENT, "the service is away or broken; nothing was changed", methods="GET HEAD"),
    _rule(ALL_5XX, Meaning.UNCERTAIN, "the service or a proxy failed, perhaps after the deed: it is looked for first"),
    _rule(range(300, 500), Meaning.TERMINAL, "the service refuses the request: only another specification helps"),
)


def meaning_of(service: str, method: str, code: int, message: str) -> Rule:
    """Return the rule for an unsuccessful answer."""
    return next(rule for rule in RULES if rule.fits(service, method, code, message))


def error_of(
    service: str, method: str, code: int, body: Any, headers: Mapping[str, str], reason: str = ""
) -> HomeostatError:
    """Return the error for an answer.

    Args:
        method: HTTP method of the request.
        code: Status code.
        body: Decoded JSON; None if absent.
        reason: Error text if the body has none.
    """
    words = words_of(body) or reason or f"HTTP {code}"
    rule = meaning_of(service, method, code, words)
    message = f"{service}: {words}" + (f" ({rule.remedy})" if rule.remedy else "")
    match rule.meaning:
        case Meaning.MISSING:
            return Missing(message)
        case Meaning.UNAUTHENTICATED:
            return Unauthenticated(message)
        case Meaning.TRANSIENT if code == FORBIDDEN and method in READS:
            return Forbidden(message)
        case Meaning.TRANSIENT:
            return Transient(message, retry_after_s(code, headers) or None)
        case Meaning.UNCERTAIN:
            return Uncertain(message)
        case Meaning.TERMINAL:
            return Terminal(message)


def words_of(body: Any) -> str:
    """Return the message of a fault, at whatever depth a service puts it; "" if absent."""
    for name in ("message", "faultstring", "description", "error_message", "title"):
        if isinstance(body, Mapping) and isinstance(body.get(name), str) and body[name]:
            return " ".join(body[name].split())[:MESSAGE_MAX]
    nested = body.values() if isinstance(body, Mapping) else body if isinstance(body, list) else ()
    return next(filter(None, (words_of(part) for part in nested if isinstance(part, Mapping | list))), "")


def retry_after_s(code: int, headers: Mapping[str, str]) -> float:
    """Return the pause in seconds that a service requests; 0 if none.

    An overloaded or rate-limiting service sends it in `Retry-After`, as seconds or as a date.
    """
    value = headers.get("Retry-After", "").strip()
    if code not in WAITS or not value:
        return 0.0
    if value.isdigit():
        return float(value)
    try:
        until, now = (parsedate_to_datetime(text) for text in (value, headers.get("Date", "")))
        return max((until - now).total_seconds(), 0.0)
    except (TypeError, ValueError):
        return 0.0
