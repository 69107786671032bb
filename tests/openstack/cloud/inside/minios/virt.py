"""Nova's compute driver: its own fake one, except that

* guests are files, $MINIOS_HYPERVISOR/HOST/UUID.json: they outlive nova-compute, and can be changed behind Nova's back;
* pause, suspend and rescue change the power state, as on a real hypervisor;
* a file UUID.event makes the driver emit an event, as libvirt does when a guest stops by itself;
* faults of kind "virt" (`faults.py`) delay any operation or let it fail, such as
  {"kind": "virt", "op": "^spawn$", "name": "^bad", "error": "no luck"}.
"""

import json
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from nova.compute import power_state
from nova.virt import event as virtevent
from nova.virt import fake
from oslo_log import log as logging

from minios import faults

LOG = logging.getLogger(__name__)
LOOK_S = 0.5
EVENTS = {
    "stopped": virtevent.EVENT_LIFECYCLE_STOPPED,
    "started": virtevent.EVENT_LIFECYCLE_STARTED,
    "paused": virtevent.EVENT_LIFECYCLE_PAUSED,
    "resumed": virtevent.EVENT_LIFECYCLE_RESUMED,
    "suspended": virtevent.EVENT_LIFECYCLE_SUSPENDED,
}
FAILING = (
    *("spawn", "destroy", "power_on", "power_off", "reboot", "pause", "unpause", "suspend", "resume"),
    *("rescue", "unrescue", "snapshot", "soft_delete", "restore", "attach_volume", "detach_volume"),
    *("attach_interface", "detach_interface", "migrate_disk_and_power_off", "finish_migration"),
)
"""The operations that a fault may hit."""


class Guest:
    """A guest as Nova's fake driver has them; its attributes are in its file."""

    def __init__(self, path: str) -> None:
        self._path = path

    @property
    def name(self) -> str:
        return str(self._read()["name"])

    @property
    def uuid(self) -> str:
        return str(self._read()["uuid"])

    @property
    def state(self) -> int:
        return int(self._read()["state"])

    @state.setter
    def state(self, value: int) -> None:
        self.write(**{**self._read(), "state": value})

    def _read(self) -> dict[str, Any]:
        with open(self._path) as file:
            found: dict[str, Any] = json.load(file)
        return found

    def write(self, **values: object) -> None:
        new = f"{self._path}.{threading.get_ident()}.tmp"
        with open(new, "w") as file:
            json.dump(values, file)
        os.replace(new, self._path)


class Guests(MutableMapping[str, Any]):
    """Those of a host, by UUID."""

    def __init__(self, path: str) -> None:
        self.path = path
        os.makedirs(path, exist_ok=True)

    def _file(self, guest_id: str) -> str:
        return os.path.join(self.path, f"{guest_id}.json")

    def __getitem__(self, guest_id: str) -> Guest:
        if guest_id not in self:
            raise KeyError(guest_id)
        return Guest(self._file(guest_id))

    def __setitem__(self, guest_id: str, guest: Any) -> None:
        Guest(self._file(guest_id)).write(name=guest.name, uuid=guest.uuid, state=guest.state)

    def __delitem__(self, guest_id: str) -> None:
        os.unlink(self._file(guest_id))

    def __contains__(self, guest_id: object) -> bool:
        return os.path.exists(self._file(str(guest_id)))

    def __iter__(self) -> Iterator[str]:
        return (name.removesuffix(".json") for name in os.listdir(self.path) if name.endswith(".json"))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class MiniDriver(fake.FakeDriver):  # type: ignore[misc]
    # Room for more than 10,000 guests of the tiny flavor.
    vcpus = 100000
    memory_mb = 100000 * 1024
    local_gb = 1000000

    def init_host(self, host: str) -> None:
        super().init_host(host)
        self._set_nodes([host])
        self.instances = Guests(os.path.join(os.environ["MINIOS_HYPERVISOR"], host))
        threading.Thread(target=self._watch_events, daemon=True).start()

    # Nova's fake driver invents another UUID of the node in each process, and a restarted nova-compute is refused then.

    @staticmethod
    def _node_uuid(name: str) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}.minios"))

    def get_available_resource(self, nodename: str) -> dict[str, Any]:
        status: dict[str, Any] = super().get_available_resource(nodename)
        if status:
            status["uuid"] = self._node_uuid(nodename)
        return status

    def get_nodenames_by_uuid(self, refresh: bool = False) -> dict[str, str]:
        return {self._node_uuid(name): name for name in self.get_available_nodes()}

    def _watch_events(self) -> None:
        while True:
            time.sleep(LOOK_S)
            for name in os.listdir(self.instances.path):
                if name.endswith(".event"):
                    self._emit(name)

    def _emit(self, name: str) -> None:
        path = os.path.join(self.instances.path, name)
        try:
            with open(path) as file:
                transition = EVENTS[file.read().strip()]
            os.unlink(path)
            self.emit_event(virtevent.LifecycleEvent(name.removesuffix(".event"), transition))
        except Exception:
            LOG.exception("cannot emit the event %s", name)

    def _set_state(self, instance: Any, state: int) -> None:
        if instance.uuid in self.instances:
            self.instances[instance.uuid].state = state

    def pause(self, instance: Any) -> None:
        self._set_state(instance, power_state.PAUSED)

    def unpause(self, instance: Any) -> None:
        self._set_state(instance, power_state.RUNNING)

    def suspend(self, context: Any, instance: Any) -> None:
        self._set_state(instance, power_state.SUSPENDED)

    def resume(self, context: Any, instance: Any, *_: Any, **__: Any) -> None:
        self._set_state(instance, power_state.RUNNING)

    def rescue(self, context: Any, instance: Any, *_: Any, **__: Any) -> None:
        self._set_state(instance, power_state.RUNNING)

    def soft_delete(self, instance: Any) -> None:
        self._set_state(instance, power_state.SHUTDOWN)

    def restore(self, instance: Any) -> None:
        self._set_state(instance, power_state.RUNNING)


def _with_faults(op: str, method: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        # The instance is the first argument that has a display name.
        instance = next((each for each in (*args, *kwargs.values()) if hasattr(each, "display_name")), None)
        name, guest_id = getattr(instance, "display_name", ""), getattr(instance, "uuid", "")
        faults.check("virt", op=op, host=self._host, name=name, uuid=guest_id)
        return method(self, *args, **kwargs)

    return wrapper


for _op in FAILING:
    setattr(MiniDriver, _op, _with_faults(_op, getattr(MiniDriver, _op)))
