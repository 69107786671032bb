"""The disk of an SQLite database is full for a while: nothing is made twice, and all goes on once there is space."""

from collections.abc import Callable
from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour
from homeostat.model.errors import Outage
from homeostat.services.pipeline.request import StackRequest
from tests.component.running import Service, group, server, template

MORE = 10_000
"""Pages, of which none of these databases has so many."""
SOON_S = 5.0


def pages(service: Service, pragma: str) -> int:
    """What SQLite answers to a pragma."""
    connection = service.db.engine.raw_connection()
    try:
        return int(connection.cursor().execute(f"PRAGMA {pragma}").fetchone()[0])
    finally:
        connection.close()


def fill(service: Service, spare: int) -> None:
    """Leave room for this many pages more: each transaction that needs others meets the genuine SQLITE_FULL."""
    connection = service.db.engine.raw_connection()
    connection.cursor().execute("VACUUM")
    connection.close()
    limit = pages(service, "page_count") + spare
    assert pages(service, f"max_page_count={limit}") == limit


def is_full(service: Service) -> bool:
    """Whether a transaction that needs many pages is refused."""
    try:
        with service.db.write() as tx:
            tx.exec_driver_sql("CREATE TABLE filler (text TEXT)")
            tx.exec_driver_sql("INSERT INTO filler VALUES (randomblob(1000000))")
            raise InterruptedError
    except Outage as error:
        return "full" in str(error.__cause__)
    except InterruptedError:
        return False


def lived(service: Service, seconds: float) -> None:
    """Let time pass; what a process of the service tries again later is tried again a second later."""
    end = service.clock.time + seconds
    while service.clock.time < end:
        try:
            service.live(min(1.0, end - service.clock.time))
        except Outage:
            service.clock.time += 1.0


def resources(role: str) -> dict[str, Any]:
    member = server(name="m%index%", metadata={"role": role})
    return {"srv": server(metadata={"role": role}), "grp": group(3, member)}


def roles(service: Service) -> list[str]:
    return [each["metadata"]["role"] for each in service.cloud.things("server").values()]


def check_whole(service: Service) -> None:
    """Nothing was made twice or forgotten, and the file is what SQLite says that it is."""
    handles = [row.handle for stack in service.stacks() for row in service.rows(stack.id)]
    assert set(service.servers()) <= set(handles)
    assert len(service.servers()) == 4
    with service.db.read() as tx:
        assert tx.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"


def lose(service: Service, _stack_id: str) -> None:
    for handle in (service.servers()[0], service.servers()[-1]):
        service.cloud.vanish(handle)


def update(service: Service, stack_id: str) -> None:
    service.update(stack_id, resources("new"))
    service.cloud.behaviour.build_s = 1.0


def update_and_lose(service: Service, stack_id: str) -> None:
    update(service, stack_id)
    service.cloud.vanish(service.servers()[0])


@pytest.mark.heavy
@pytest.mark.parametrize("spare", range(0, 24, 3))
@pytest.mark.parametrize(
    ("act", "state", "role"),
    [
        (lose, "CREATE_COMPLETE", "old"),
        (update, "UPDATE_COMPLETE", "new"),
        (update_and_lose, "UPDATE_COMPLETE", "new"),
    ],
)
def test_what_was_to_be_done_is_done_as_soon_as_there_is_space(
    act: Callable[[Service, str], None], state: str, role: str, spare: int
) -> None:
    service = Service(CloudBehaviour(build_s=1.0))
    stack_id = service.create(resources("old"))
    service.rest()
    act(service, stack_id)
    fill(service, spare)
    assert is_full(service)
    lived(service, 120.0)
    pages(service, f"max_page_count={MORE}")
    assert not is_full(service)
    lived(service, SOON_S)
    assert (service.state(stack_id), set(roles(service))) == (state, {role})
    check_whole(service)


@pytest.mark.heavy
@pytest.mark.parametrize("spare", range(0, 24, 3))
def test_a_creation_goes_on_too(spare: int) -> None:
    service = Service(CloudBehaviour(build_s=1.0))
    stack_id = service.begin(resources("old"))
    fill(service, spare)
    lived(service, 120.0)
    pages(service, f"max_page_count={MORE}")
    lived(service, 2 * SOON_S)
    assert service.state(stack_id) == "CREATE_COMPLETE"
    check_whole(service)


def test_a_request_for_which_there_is_no_space_is_put_off_and_changes_nothing() -> None:
    service = Service()
    stack_id = service.create(resources("old"))
    service.rest()
    fill(service, 0)
    large = StackRequest({**template(resources("new")), "description": "x" * 100_000})
    with pytest.raises(Outage):
        service.stack_service.update(stack_id, large)
    pages(service, f"max_page_count={MORE}")
    service.live(SOON_S)
    assert (service.state(stack_id), service.stack(stack_id).revision) == ("CREATE_COMPLETE", 1)
    service.stack_service.update(stack_id, large)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
