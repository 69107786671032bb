"""URLs of members are called concurrently, within limits of time and size."""

import logging
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, wait
from dataclasses import dataclass

from homeostat.model.answers import OWN_INABILITIES, Kind
from homeostat.model.health_policy import Detection, DetectionType
from homeostat.model.node_health import Look
from homeostat.planner.policies import verdicts
from homeostat.templates import patterns

LOG = logging.getLogger(__name__)
PATIENCE_PART, PATIENCE_S_MIN = 0.1, 1.0
"""Time limit of an answer: part of the pause between attempts, and its minimum."""
SIDE_BY_SIDE = 16
"""Concurrent calls to URLs of one project."""


NOT_PERMITTED = frozenset({401, 403, 407, 429, 511})
"""Status codes by which a node, or a proxy before it, refuses calls by this service, or calls so frequent."""
NO_SUCH_PAGE = frozenset({404, 410})
"""Status codes of a missing page: the node may have lost the page, or the URL of the policy may be wrong."""
NO_ANSWER, UNASKED, ANSWERED = "no answer", "it could not be asked", "it answered"
"""Begin of the evidence: no answer came, this service could not make the call, or there was an answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a GET; redirects were followed.

    Attributes:
        status: Status code; 0 without an answer.
        text: The body; why there is no answer.
        kind: Why there is no answer; None for silence.
    """

    status: int
    text: str
    kind: Kind | None = None


Get = Callable[[str, bool, float], Answer]
"""Calls a URL; takes also whether certificates are checked, and the time limit in seconds. It need not raise."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A URL to call; `place` identifies the probe to the caller."""

    place: tuple[str, int]
    project: str
    url: str
    detection: Detection


def judged(detection: Detection, answer: Answer) -> Look:
    """Return the verdict on an answer: an error status is as bad as no answer, whatever the body says."""
    kind, evidence = _heard(detection, answer)
    excused = kind in verdicts.UNCONNECTED and not detection.no_answer_is_unhealthy
    if excused:
        return verdicts.look(DetectionType.URL, Kind.HEALTHY, f"{evidence}, which is no fault by its policy")
    return verdicts.look(DetectionType.URL, kind, evidence)


def _heard(detection: Detection, answer: Answer) -> tuple[Kind, str]:
    """Return the kind of an answer, and its evidence."""
    if answer.status == 0:
        kind = answer.kind or Kind.SILENT
        return kind, f"{UNASKED if kind in OWN_INABILITIES else NO_ANSWER}: {answer.text}"
    evidence = f"{ANSWERED} {answer.status}"
    if answer.status in NOT_PERMITTED:
        return Kind.NOT_PERMITTED, f"{evidence}: this service may not ask it, which says nothing about its health"
    if answer.status >= 400:
        return Kind.UNHEALTHY, evidence
    try:
        fits = patterns.compiled(detection.response).search(answer.text, timeout=patterns.MATCH_S)
    except TimeoutError:
        return Kind.OWN_TIME, "poll_url_healthy_response takes too long to be searched for in its answer"
    return (Kind.HEALTHY, evidence) if fits else (Kind.UNHEALTHY, f"{evidence} without what a healthy one says")


def says_nothing(evidence: str) -> bool:
    """Return whether there was no answer at all: the node was silent, or could not be called."""
    return evidence.startswith((NO_ANSWER, UNASKED))


def lacks_page(look: Look) -> bool:
    """Return whether a node has answered that the page is missing."""
    return look.evidence in {f"{ANSWERED} {code}" for code in NO_SUCH_PAGE}


def ask(probes: Sequence[Probe], get: Get, pool: Executor | None) -> dict[tuple[str, int], Look]:
    """Call URLs, at most `SIDE_BY_SIDE` of each project at a time; projects do not wait for each other."""
    looks: dict[tuple[str, int], Look] = {}
    queues: Mapping[str, deque[Probe]] = defaultdict(deque)
    for probe in probes:
        queues[probe.project].append(probe)
    lock = threading.Lock()

    def work(queue: deque[Probe]) -> None:
        while True:
            with lock:
                if not queue:
                    return
                probe = queue.popleft()
            patience_s = max(PATIENCE_PART * probe.detection.pause_s, PATIENCE_S_MIN)
            look = _asked(probe, get, patience_s)
            with lock:
                looks[probe.place] = look

    runs = [queue for queue in queues.values() for _ in range(min(SIDE_BY_SIDE, len(queue)))]
    if pool is None:
        for queue in runs:
            work(queue)
        return looks
    wait([pool.submit(work, queue) for queue in runs])
    return looks


def _asked(probe: Probe, get: Get, patience_s: float) -> Look:
    try:
        return judged(probe.detection, get(probe.url, probe.detection.verify_tls, patience_s))
    except Exception as error:
        LOG.exception("cannot ask %s", probe.url)
        return verdicts.look(DetectionType.URL, Kind.UNCLEAR, f"{UNASKED}: {error!r}")
