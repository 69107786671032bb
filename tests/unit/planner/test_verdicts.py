"""What every answer of every detector says about a node: the whole table, and what has no place in it."""

import errno
import itertools
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence

import httpcore
import pytest

from homeostat.clouds.unanswered import KINDS, Refused, kind_of
from homeostat.convergence.health_checks.probes import Answer, judged
from homeostat.kinds.compute import SERVER
from homeostat.model.answers import OWN_INABILITIES, Detector, Kind
from homeostat.model.errors import Rejected
from homeostat.model.health_policy import Detection, DetectionType
from homeostat.model.node_health import Finding
from homeostat.model.observed import Observation, Presence
from homeostat.planner.policies import detection, verdicts
from homeostat.planner.policies.detection import Member

WELL, ILL, UNKNOWN = Finding.HEALTHY, Finding.UNHEALTHY, Finding.UNKNOWN
KEPT = {Kind.HEALTHY: WELL, Kind.UNHEALTHY: ILL, Kind.GONE: ILL}
DETECTORS: Sequence[Detector | DetectionType] = (*DetectionType, *Detector)
EXPECTED: Mapping[Detector | DetectionType, Mapping[Kind, Finding]] = {
    DetectionType.EVENTS: KEPT,
    DetectionType.STATUS: KEPT,
    DetectionType.HYPERVISOR: KEPT,
    DetectionType.BALANCER: {Kind.HEALTHY: WELL, Kind.UNHEALTHY: ILL},
    DetectionType.URL: {
        Kind.HEALTHY: WELL,
        Kind.UNHEALTHY: ILL,
        Kind.REFUSED: ILL,
        Kind.BROKEN_OFF: ILL,
        Kind.INVALID_CERTIFICATE: ILL,
        Kind.SILENT: ILL,
    },
    Detector.PLACE: {Kind.HEALTHY: WELL, Kind.UNHEALTHY: ILL},
    Detector.REPORTER: {Kind.UNHEALTHY: ILL},
    Detector.CREATION: {Kind.UNHEALTHY: ILL},
}


@pytest.mark.parametrize(("detector", "kind"), list(itertools.product(DETECTORS, Kind)))
def test_every_answer_of_every_detector(detector: Detector | DetectionType, kind: Kind) -> None:
    assert verdicts.verdict(detector, kind) is EXPECTED[detector].get(kind, UNKNOWN)


def test_no_node_is_ill_for_what_this_service_is_not_able_to_do() -> None:
    assert {verdicts.verdict(*each) for each in itertools.product(DETECTORS, OWN_INABILITIES)} == {UNKNOWN}
    assert verdicts.verdict("OF_A_LATER_VERSION", Kind.UNHEALTHY) is UNKNOWN


# -- the system --------------------------------------------------------------------------------------------------------

SAID_BY_THE_NODE = {"ECONNREFUSED", "ECONNRESET", "ECONNABORTED", "EPIPE", "ESHUTDOWN", "ETIMEDOUT"}
URL = Detection(DetectionType.URL, "http://node/", response="ok")


def url_verdict(kind: Kind) -> Finding:
    return judged(URL, Answer(0, "why", kind)).finding


@pytest.mark.parametrize("number", sorted(errno.errorcode))
def test_every_error_of_the_system(number: int) -> None:
    """Only what the machine of the node says, or that nobody has said anything, counts against it."""
    error = httpcore.ConnectError(str(number))
    error.__cause__ = OSError(number, "x")
    expected = ILL if errno.errorcode[number] in SAID_BY_THE_NODE else UNKNOWN
    assert url_verdict(kind_of(error, 1.0, 0.1, 0.1)) is expected
    assert number in KINDS or expected is UNKNOWN


def certificate_error(code: int) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code = code
    return error


@pytest.mark.parametrize("code", range(1, 100))
def test_every_certificate_that_is_not_accepted(code: int) -> None:
    """What is wrong with it in itself counts; what this machine trusts, and its clock, do not."""
    error = httpcore.ConnectError("tls")
    error.__context__ = certificate_error(code)
    expected = ILL if code in (10, 23, 62, 64) else UNKNOWN
    assert url_verdict(kind_of(error, 1.0, 0.1, 0.1)) is expected


def tls_error(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, reason)
    error.reason = reason
    return error


def other_errors() -> Iterator[tuple[Exception, Finding]]:
    for reason in ("UNSUPPORTED_PROTOCOL", "DH_KEY_TOO_SMALL", "TLSV13_ALERT_CERTIFICATE_REQUIRED", "NEW_ONE"):
        yield tls_error(reason), UNKNOWN
    yield from ((tls_error("WRONG_VERSION_NUMBER"), ILL), (ssl.SSLEOFError(8, "eof"), ILL))
    yield from ((socket.gaierror(each, "x"), UNKNOWN) for each in (socket.EAI_AGAIN, socket.EAI_NONAME))
    yield from ((Refused("not public"), UNKNOWN), (Refused("no name", Kind.UNRESOLVED), UNKNOWN))
    yield from (
        (Refused("redirects to nowhere", Kind.UNHEALTHY), ILL),
        (Rejected("DownloadLimitExceeded", "x"), UNKNOWN),
    )
    yield from ((httpcore.RemoteProtocolError("garbage"), ILL), (httpcore.LocalProtocolError("ours"), UNKNOWN))
    yield from ((httpcore.UnsupportedProtocol("x"), UNKNOWN), (ValueError("nobody thought of it"), UNKNOWN))


@pytest.mark.parametrize(("error", "expected"), list(other_errors()), ids=lambda each: repr(each)[:40])
def test_other_errors(error: Exception, expected: Finding) -> None:
    assert url_verdict(kind_of(error, 1.0, 0.1, 0.1)) is expected


@pytest.mark.parametrize(
    ("took_s", "waited_s", "expected"),
    [
        (1.0, 1.0, ILL),
        (1.2, 0.9, ILL),
        (1.0, 0.5, UNKNOWN),  # the rest went into looking the name up, or into waiting for a turn
        (3.0, 3.0, UNKNOWN),  # the end of the time was noticed late: this process was not running
        (0.0, 0.0, UNKNOWN),
    ],
)
def test_silence_counts_where_there_was_time(took_s: float, waited_s: float, expected: Finding) -> None:
    for error in (httpcore.ReadTimeout(), httpcore.ConnectTimeout(), TimeoutError()):
        assert url_verdict(kind_of(error, 1.0, took_s, waited_s)) is expected


# -- answers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", range(100, 600))
def test_every_status_code(status: int) -> None:
    expected = WELL if status < 400 else UNKNOWN if status in (401, 403, 407, 429, 511) else ILL
    assert judged(URL, Answer(status, "ok")).finding is expected


@pytest.mark.parametrize("kind", list(Kind))
def test_a_policy_excuses_what_is_no_connection_and_nothing_else(kind: Kind) -> None:
    excusing = Detection(DetectionType.URL, "http://node/", no_answer_is_unhealthy=False)
    strict, mild = url_verdict(kind), judged(excusing, Answer(0, "why", kind)).finding
    assert mild is (WELL if kind in verdicts.UNCONNECTED else strict)


POLLED = {"error": ILL, "soft_deleted": ILL, "stopped": ILL, "lost": ILL, "paused": WELL, "suspended": WELL}
MORE = {"active": WELL, "rescue": WELL, "": UNKNOWN, "a word of a later cloud": UNKNOWN}


@pytest.mark.parametrize("word", sorted(SERVER.statuses.words | MORE.keys()))
def test_every_status_of_a_server(word: str) -> None:
    expected = UNKNOWN if word in SERVER.statuses.busy else {**POLLED, **MORE}[word]
    member = Member("server", Observation(Presence.PRESENT, "server-1", {"status": word}), 0.0)
    assert detection.by_status(member, DetectionType.STATUS).finding is expected
    heard = ILL if word == "paused" else expected
    assert detection.by_status(member, DetectionType.EVENTS).finding is heard


@pytest.mark.parametrize("presence", list(Presence))
def test_what_is_seen_of_a_server(presence: Presence) -> None:
    expected = {Presence.ABSENT: ILL, Presence.UNKNOWN: UNKNOWN, Presence.PRESENT: WELL}[presence]
    seen = Observation(presence, "server-1", {"status": "active"}, reason="the endpoint answered 404")
    look = detection.by_status(Member("server", seen, 0.0), DetectionType.STATUS)
    assert look.finding is expected
    assert look.evidence


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        *(("error", ILL), ("online", WELL), ("degraded", WELL)),
        *((each, UNKNOWN) for each in ("no_monitor", "offline", "draining", "", "later")),
    ],
)
def test_every_state_of_a_place_in_a_load_balancer(word: str, expected: Finding) -> None:
    place = Observation(Presence.PRESENT, "place-1", {"operating_status": word})
    assert detection.by_balancer(place).finding is expected


def test_a_load_balancer_that_has_no_place_or_is_out_of_sight_says_nothing() -> None:
    for place in (None, Observation(Presence.ABSENT, "p"), Observation(Presence.UNKNOWN, "p", reason="403")):
        assert detection.by_balancer(place).finding is UNKNOWN
