"""What is done next for a node that is to go once others have been notified."""

import pytest

from homeostat.clustering.decisions.hooks import RETRY_S, Next, message, next_step, settings, waiting

QUEUE = {"type": "zaqar", "params": {"queue": "q", "url": ""}, "timeout": 60}


@pytest.mark.parametrize(
    ("timeout", "tried", "sent", "later", "next_", "at"),
    [
        (60, 0, False, 0, Next.NOTIFY, RETRY_S),
        (60, 3, False, 58, Next.NOTIFY, 60),
        (60, 3, False, 60, Next.GO, 60),
        (60, 1, True, 0, Next.WAIT, 60),
        (60, 1, True, 59, Next.WAIT, 60),
        (60, 1, True, 60, Next.GO, 60),
        (0, 0, False, 0, Next.NOTIFY, 0),
        (0, 1, False, 1, Next.GO, 1),
        (0, 1, True, 1, Next.GO, 1),
    ],
)
def test_the_next_step(timeout: int, tried: int, sent: bool, later: float, next_: Next, at: float) -> None:
    now = 1000.0
    hook = {**waiting({**QUEUE, "timeout": timeout}, now), "tried": tried, "sent": sent}
    step = next_step(hook, now + later)
    assert (step.next, step.at) == (next_, now + at)


def test_where_the_message_goes() -> None:
    assert settings(waiting(QUEUE, 0.0)) == {"type": "zaqar-queue", "target": "q", "ttl": 300}
    url = {"type": "webhook", "params": {"queue": "", "url": "http://h/p"}, "timeout": 0}
    assert settings(waiting(url, 0.0)) == {"type": "webhook", "url": "http://h/p"}


def test_the_message() -> None:
    assert message("a", "n", "p") == {
        "lifecycle_action_token": "a",
        "node_id": "n",
        "resource_id": "p",
        "lifecycle_transition_type": "termination",
    }
