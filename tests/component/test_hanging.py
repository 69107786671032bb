"""A call of a cloud that never answers: its pass loses the shard, and what it does when it wakes up does no harm."""

from collections.abc import Sequence

import pytest

from homeostat.clouds.port import Answer, Creation
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.convergence.jobs.conductor import run_pass
from homeostat.store.shards.leases import Lease
from tests.component.running import LIMITS, Service, server, volume


class Slow(SimulatedCloud):
    """Takes so long for a creation that others have gone on with the shard meanwhile."""

    service: Service
    leases: Sequence[Sequence[Lease]] = ()

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        answers = super().create(kind, intents)
        if kind == "server" and not self.leases:
            reconciler, clock = self.service.reconciler, self.service.clock
            clock.time += LIMITS.hang_s
            self.leases = [reconciler.leases]
            clock.time += 1.0
            self.leases = [*self.leases, reconciler.leases]
            run_pass(reconciler, self.service.claim())
        return answers


def test_the_shard_of_a_pass_that_hangs_goes_to_another_user(caplog: pytest.LogCaptureFixture) -> None:
    service = Service(cloud=lambda clock: Slow(clock.now))
    slow = service.cloud
    assert isinstance(slow, Slow)
    slow.service = service
    stack_id = service.begin({"srv": server(), "disk": volume()})
    with caplog.at_level("INFO"):
        service.work()
    before, after = slow.leases
    assert (len(before), len(after)) == (1, 0), "a heartbeat keeps it until it counts as hung"
    assert "has a newer owner than epoch" in caplog.text, "it is refused when it wakes up"
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert len(service.cloud.things()) == 2
