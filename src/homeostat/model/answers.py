"""Kinds of answers of a health detector. `planner.policies.verdicts` maps each kind to a finding about the node."""

from enum import auto

from homeostat.model.status import Word


class Detector(Word):
    """Sources of findings about a node, besides the detections of a policy (`DetectionType`)."""

    PLACE = auto()
    """All vantage points together, each of which has probed a URL."""
    REPORTER = auto()
    """A person or program that has marked the node."""
    CREATION = auto()
    """The creation of the node, while there is no thing to ask about."""


class Kind(Word):
    """A kind of answer, or of missing answer.

    The first block comes from the node or its manager, and `SILENT` means that neither answered in time. The second
    block concerns this service or the network path, and says nothing about the node.
    """

    HEALTHY = "well"
    UNHEALTHY = "ill"
    """The node or its manager reports a failure: a status, an error code, an unexpected body."""
    GONE = auto()
    """The node's manager (Nova, say) answers that the node does not exist."""
    REFUSED = auto()
    """The machine refuses the connection: nothing listens on the port."""
    BROKEN_OFF = auto()
    """The connection was closed without a valid answer."""
    INVALID_CERTIFICATE = auto()
    """The certificate has expired or belongs to another name."""
    SILENT = auto()
    """Timeout: no answer in sufficient time."""

    BUSY = auto()
    """An operation on the node is in progress."""
    OUT_OF_SIGHT = auto()
    """The node's manager cannot see the node now."""
    BLIND = auto()
    """The node's manager seems to see no node at all, so its answers do not count."""
    NOT_COVERED = auto()
    """The detector does not cover this node: a place without a monitor, a member without a load balancer."""
    NOT_LOOKED = auto()
    """Not checked yet, or not recently."""
    DISAGREED = auto()
    """The detectors disagree."""
    FORBIDDEN_BY_RULE = auto()
    """The rules of this service do not allow the request."""
    NOT_PERMITTED = auto()
    """This service has no permission to ask, or asks too often."""
    NO_SUCH_PAGE = auto()
    """The page does not exist and never did: the address may be wrong."""
    UNRESOLVED = auto()
    """This service cannot resolve the name."""
    NO_ROUTE = auto()
    """No route to the host."""
    UNTRUSTED = auto()
    """This service cannot verify the certificate, or does not support the TLS version."""
    OWN_TIME = auto()
    """This service used up the time itself: it was busy, or was not running."""
    OUT_OF_MEANS = auto()
    """This machine has run out of file descriptors, ports or memory."""
    TOO_LARGE = auto()
    """The answer is larger than this service reads."""
    NO_DETECTOR = auto()
    """This worker has no means to ask."""
    UNCLEAR = auto()
    """Anything else."""


OWN_INABILITIES = frozenset(
    {
        *(Kind.FORBIDDEN_BY_RULE, Kind.NOT_PERMITTED, Kind.NO_SUCH_PAGE, Kind.UNRESOLVED, Kind.NO_ROUTE),
        *(Kind.UNTRUSTED, Kind.OWN_TIME, Kind.OUT_OF_MEANS, Kind.TOO_LARGE, Kind.NO_DETECTOR, Kind.UNCLEAR),
    }
)
"""Kinds of answers that concern this service or the network path, and say nothing about a node."""
