"""What befalls the service: its workers are killed, and answers of the cloud are lost after the deed."""

import contextlib
import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from tests.openstack.running import Fault, OpenStack
from tests.openstack.storm.service import Service

SHARE = 0.4
"""Of the answers to the service's requests that change something."""
GAP_S = 8.0
"""The longest time between two kills: on a busy machine a worker takes seconds to start, and is to do something."""


@dataclass(slots=True)
class Trouble:
    """kills, losses — how many there shall be in all."""

    service: Service
    cloud: OpenStack
    rng: random.Random
    kills: int
    losses: int
    killed: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    """Method and service -> answers that told of a deed, and were lost."""

    @property
    def is_over(self) -> bool:
        return self.killed >= self.kills and self.lost.total() >= self.losses

    @property
    def figures(self) -> str:
        return f"{self.killed} of {self.kills} kills, {self.lost.total()} of {self.losses} lost answers"

    @contextlib.contextmanager
    def raging(self, is_busy: Callable[[], bool]) -> Iterator[None]:
        """Meanwhile. is_busy — whether the service has work: only then a kill counts."""
        stop = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            killing = pool.submit(self._kill, stop, is_busy)
            try:
                with self._losing() as fault:
                    yield
                    self.lost += _deeds(fault) if fault is not None else Counter()
            finally:
                stop.set()
            killing.result()

    @contextlib.contextmanager
    def _losing(self) -> Iterator[Fault | None]:
        if self.lost.total() >= self.losses:
            yield None
            return
        rule = {"service": "^(nova|neutron|cinder|octavia)-api$", "method": "^(POST|PUT|DELETE)$"}
        lost = {"share": SHARE, "status": 502, "after": True}
        with self.cloud.fault("http", **rule, agent=re.escape(self.service.agent), **lost) as fault:
            yield fault

    def _kill(self, stop: threading.Event, is_busy: Callable[[], bool]) -> None:
        while self.killed < self.kills and not stop.wait(self.rng.uniform(0.1, GAP_S)):
            if is_busy():
                self.service.kill_worker(self.rng)
                self.killed += 1


def _deeds(fault: Fault) -> Counter[str]:
    """Method and service -> how many answers that were lost told of success."""
    return Counter(f"{each['method']} {each['service']}" for each in fault.hits() if each["lost"].startswith("2"))
