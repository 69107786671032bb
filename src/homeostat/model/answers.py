"""Ways in which a detector of health can answer: values that all layers share.

What each of them says about a node is in `planner.policies.verdicts`.
"""

from enum import auto

from homeostat.model.status import Word


class Detector(Word):
    """Who says something about a node, besides the detections that a policy names (`DetectionType`)."""

    PLACE = auto()
    """All places of workers together, of which each has asked a URL."""
    REPORTER = auto()
    """A person, or a program, that has marked the node."""
    CREATION = auto()
    """The making of the node, where there is no thing yet."""


class Kind(Word):
    """A way to answer, or not to.

    The first ones are said by what is asked: by the node, or by those whose word counts for it. Silence is said by
    nobody. The others say something about this service, or about the way, and nothing about the node.
    """

    HEALTHY = "well"
    UNHEALTHY = "ill"
    """It says so itself: a status, an error code, a text that is not the healthy one."""
    GONE = auto()
    """Who keeps it has answered that it does not exist."""
    REFUSED = auto()
    """Its machine has answered that nothing listens there."""
    BROKEN_OFF = auto()
    """It has closed the connection without an answer, or with one that is none."""
    INVALID_CERTIFICATE = auto()
    """It shows a certificate that is out of date, or another one's."""
    SILENT = auto()
    """Nobody has answered, though there was time."""

    BUSY = auto()
    """Something goes on with it."""
    OUT_OF_SIGHT = auto()
    """Who keeps it cannot see it now."""
    BLIND = auto()
    """Who keeps it seems to see nothing at all, so that its word does not count."""
    NOT_COVERED = auto()
    """This detector has no word for it: a place without a monitor, a member without a load balancer."""
    NOT_LOOKED = auto()
    """It was not looked at yet, or not lately."""
    DISAGREED = auto()
    """Those who were asked do not agree."""
    FORBIDDEN_BY_RULE = auto()
    """The rules of this service do not allow the request."""
    NOT_PERMITTED = auto()
    """This service has no permission to ask, or asks too often."""
    NO_SUCH_PAGE = auto()
    """There is no such page, and there never was: the address may be wrong."""
    UNRESOLVED = auto()
    """This service cannot resolve the name."""
    NO_ROUTE = auto()
    """No way leads there from here."""
    UNTRUSTED = auto()
    """This service cannot verify the certificate, or does not speak that version of TLS."""
    OWN_TIME = auto()
    """This service has used up the time itself: it was busy, or was not running."""
    OUT_OF_MEANS = auto()
    """This machine lacks what is needed to ask: file descriptors, ports, memory."""
    TOO_LARGE = auto()
    """There was more than this service reads."""
    NO_DETECTOR = auto()
    """Nothing here can ask."""
    UNCLEAR = auto()
    """Anything else."""


OWN_INABILITIES = frozenset(
    {
        *(Kind.FORBIDDEN_BY_RULE, Kind.NOT_PERMITTED, Kind.NO_SUCH_PAGE, Kind.UNRESOLVED, Kind.NO_ROUTE),
        *(Kind.UNTRUSTED, Kind.OWN_TIME, Kind.OUT_OF_MEANS, Kind.TOO_LARGE, Kind.NO_DETECTOR, Kind.UNCLEAR),
    }
)
"""Kinds of answers that say something about this service, or the way, and nothing about a node."""
