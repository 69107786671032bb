"""URLs of members are asked side by side, within limits of time and size."""

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, wait
from dataclasses import dataclass

from homeostat.model.health_policy import Detection
from homeostat.model.node_health import Finding, Look
from homeostat.templates import patterns

PATIENCE_PART, PATIENCE_S_MIN = 0.1, 1.0
"""Time for an answer, as a part of the pause between attempts, and at least."""
SIDE_BY_SIDE = 16
"""URLs of one project that are asked at a time."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a GET; redirects were followed.

    Attributes:
        status: Status code; 0 without an answer.
        text: The body; why there is no answer.
    """

    status: int
    text: str


Get = Callable[[str, bool, float], Answer]
"""Ask a URL: whether certificates are checked, and seconds for the answer. Raises nothing."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One URL to ask; `place` says for what, to the caller."""

    place: tuple[str, int]
    project: str
    url: str
    detection: Detection


def judged(detection: Detection, answer: Answer) -> Look:
    """Return what an answer says: an error status is a failure as no answer is, whatever the body says."""
    if answer.status == 0 or answer.status >= 400:
        said = f"it answered {answer.status}" if answer.status else f"no answer: {answer.text}"
        if answer.status == 0 and not detection.no_answer_is_unhealthy:
            return Look(Finding.HEALTHY, f"{said}, which is no fault by its policy")
        return Look(Finding.UNHEALTHY, said)
    try:
        fits = patterns.compiled(detection.response).search(answer.text, timeout=patterns.MATCH_S)
    except TimeoutError:
        return Look(Finding.UNKNOWN, "poll_url_healthy_response takes too long to be searched for in its answer")
    if fits:
        return Look(Finding.HEALTHY, f"it answered {answer.status}")
    return Look(Finding.UNHEALTHY, f"it answered {answer.status} without what a healthy one says")


def ask(probes: Sequence[Probe], get: Get, pool: Executor | None) -> dict[tuple[str, int], Look]:
    """Ask URLs, of each project at most `SIDE_BY_SIDE` at a time; projects do not wait for one another."""
    found: dict[tuple[str, int], Look] = {}
    queues: Mapping[str, deque[Probe]] = defaultdict(deque)
    for each in probes:
        queues[each.project].append(each)
    lock = threading.Lock()

    def work(queue: deque[Probe]) -> None:
        while True:
            with lock:
                if not queue:
                    return
                probe = queue.popleft()
            patience_s = max(PATIENCE_PART * probe.detection.pause_s, PATIENCE_S_MIN)
            look = judged(probe.detection, get(probe.url, probe.detection.verify_tls, patience_s))
            with lock:
                found[probe.place] = look

    runs = [queue for queue in queues.values() for _ in range(min(SIDE_BY_SIDE, len(queue)))]
    if pool is None:
        for queue in runs:
            work(queue)
        return found
    wait([pool.submit(work, queue) for queue in runs])
    return found
