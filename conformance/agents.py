"""What runs in servers: agents that tell the service what it waits for."""

from tests.component.running import PROJECT, Service

from homeostat.model.status import Status
from homeostat.resources.families.deployments import DEPLOYMENT
from homeostat.resources.families.wait_conditions import CONDITION, HANDLE
from homeostat.resources.registry import kind_of

DONE = {"deploy_stdout": "done", "deploy_stderr": "", "deploy_status_code": 0}


def answer(service: Service) -> None:
    """Every deployment in progress is done, and every handle is signalled once while a condition waits."""
    rows = [row for each in service.stacks() for row in service.rows(each.id) if row.status == Status.IN_PROGRESS]
    for row in rows:
        if row.handle and kind_of(row.type) == DEPLOYMENT:
            service.signals.native(PROJECT, DEPLOYMENT, row.handle, DONE)
    if any(kind_of(row.type) == CONDITION for row in rows):
        for handle in service.records_of(HANDLE):
            service.signals.native(PROJECT, HANDLE, handle.id, _signal(handle.object["form"], int(service.clock.time)))
    service.work()


def _signal(form: str, number: int) -> dict[str, str]:
    """In the words of a handle; each with an id of its own, since conditions count these."""
    if form == "aws":
        return {"Status": "SUCCESS", "Reason": "it is up", "Data": "up", "UniqueId": str(number)}
    return {"status": "SUCCESS", "reason": "it is up", "data": "up", "id": str(number)}
