"""Where some of a kind are gone and others are there, the look that finds both is no reason for doubt."""

from collections.abc import Callable

import pytest

from homeostat.clouds.port import ChangeNotice
from homeostat.desired.graphs import DesiredGraphs
from homeostat.services.explainer import Explainer
from tests.component.checked import EVENTS, STATUS, Checked, policy
from tests.component.running import Service, group


def reasons(service: Service, stack_id: str) -> set[str]:
    stack = service.stack(stack_id)
    with service.db.read() as tx:
        page = Explainer(tx, DesiredGraphs(), service.clock.now()).page(stack, 100)
    return {str(each.explanation.why) for each in page.explanations}


def never_doubted(service: Service, stack_id: str, is_healed: Callable[[], bool], within_s: float) -> None:
    """It is healed in time, and at no time is the look doubted."""
    for _ in range(round(within_s / 0.5)):
        service.live(0.5)
        assert "blind" not in reasons(service, stack_id)
    assert is_healed()


@pytest.mark.heavy
@pytest.mark.parametrize("notified", [False, True])
def test_half_of_a_group_that_is_gone_is_healed_at_the_look_that_finds_it(notified: bool) -> None:
    service = Service()
    service.create({"grp": group(10)})
    service.rest()
    child, before = service.child().id, service.servers()
    service.live(90.0)
    for handle in before[:5]:
        service.cloud.vanish(handle)
    if notified:
        service.observer.notice([ChangeNotice("server", handle) for handle in before[:5]])
    within_s = 30.0 if notified else 90.0
    never_doubted(service, child, lambda: len(service.servers()) == 10, within_s)
    assert set(before[5:]) <= set(service.servers())


@pytest.mark.heavy
@pytest.mark.parametrize("mode", [STATUS, EVENTS])
def test_half_of_a_cluster_that_is_gone_is_recovered_at_the_look_that_finds_it(mode: dict[str, str]) -> None:
    service = Checked(10, policy(mode))
    before = [service.handle(number) for number in range(10)]
    service.live(15.0)
    for handle in before[:5]:
        service.cloud.vanish(handle)
    never_doubted(service, service.group, lambda: len(service.servers()) == 10, 60.0)
    assert set(before[5:]) <= set(service.servers())


def test_what_is_gone_later_than_others_were_seen_is_doubted_all_the_same() -> None:
    service = Service()
    service.create({"grp": group(10)})
    service.rest()
    child, before = service.child().id, service.servers()
    service.cloud.vanish(before[0])
    service.live(90.0)
    for handle in service.servers():
        service.cloud.vanish(handle)
    service.live(90.0)
    assert (reasons(service, child), service.servers()) == ({"blind"}, [])
