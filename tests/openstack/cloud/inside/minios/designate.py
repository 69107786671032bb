"""designate-worker without name servers: python -m minios.designate.

What the name servers of a zone would answer is made up: that they have it. Faults of kind "dns" (`faults.py`) let the
pool's back end fail ("error"); op is create, update or delete, name the zone's name.
"""

import sys
from collections.abc import Callable
from typing import Any

from designate.backend import impl_fake
from designate.cmd import worker
from designate.worker.tasks import zone as tasks

from minios import faults


def _with_faults(op: str) -> Callable[..., None]:
    def method(self: object, context: object, zone: Any, *args: object, **kwargs: object) -> None:
        faults.check("dns", op=op, name=zone.name, uuid=zone.id)

    return method


for _op in ("create", "update", "delete"):
    setattr(impl_fake.FakeBackend, f"{_op}_zone", _with_faults(_op))
tasks.SendNotify.__call__ = lambda self: True
tasks.PollForZone.__call__ = lambda self: 0 if self.zone.action == "DELETE" else self.zone.serial

if __name__ == "__main__":
    sys.argv[0] = "designate-worker"
    worker.main()
