"""Nova, with a hypervisor that is a directory of files (`inside/minios/virt.py`)."""

import shutil
import uuid

from tests.openstack.cloud.errors import Failure
from tests.openstack.cloud.files import Sections, write_ini
from tests.openstack.cloud.services.service import REGION, Endpoint, Service

UNLIMITED = ("instances", "cores", "ram", "server_groups", "server_group_members", "key_pairs")


class Nova(Service):
    name = "nova"
    apis = {"nova-api": "nova.wsgi.osapi_compute"}
    databases = ("nova_api", "nova_cell0", "nova")
    endpoints = {"compute": Endpoint("nova-api", "nova", "/v2.1")}
    optional = False

    def configuration(self) -> Sections:
        found = self.shared.sections("nova")
        found["DEFAULT"] |= {
            "compute_driver": "minios.MiniDriver",
            # Ports are ACTIVE as soon as bound; there is nothing to wait for.
            "vif_plugging_is_fatal": False,
            "vif_plugging_timeout": 0,
            "report_interval": 3,
            "service_down_time": 12,
            # How soon Nova sees what happened behind its back.
            "sync_power_state_interval": 10,
            "reclaim_instance_interval": self.site.settings.soft_delete,
            "running_deleted_instance_action": "reap",
            "resume_guests_state_on_host_boot": False,
            "allow_resize_to_same_host": True,
            "graceful_shutdown_timeout": 5,
            "manager_shutdown_timeout": 2,
        }
        return found | {
            "api_database": self.shared.database("nova_api"),
            "conductor": {"workers": 1},
            "scheduler": {"workers": 1, "discover_hosts_in_cells_interval": 5},
            "filter_scheduler": {"track_instance_changes": False},
            "quota": dict.fromkeys(UNLIMITED, -1),
            "notifications": {"notification_format": "both", "notify_on_state_change": "vm_and_task_state"},
            "oslo_messaging_notifications": self.shared.notifications,
            "placement": self.shared.account("placement"),
            "glance": {"region_name": REGION},
            "neutron": self.shared.account("neutron"),
            "cinder": {"os_region_name": REGION, **self.shared.account("nova")},
            "vnc": {"enabled": False},
        }

    def write_files(self) -> None:
        shutil.copy(self.packaged("nova", "api-paste.ini"), self.file.parent)
        # Nova loads drivers of hypervisors from its own package only.
        places = list(self.site.venv.glob("lib/python*/site-packages/nova/virt"))
        if not places:
            raise Failure(f"Nova is not installed in {self.site.venv}")
        (places[0] / "minios.py").write_text("from minios.virt import MiniDriver  # noqa\n")
        for host in self.site.settings.compute_hosts:
            state = self.site.run("state", host)
            state.mkdir(parents=True, exist_ok=True)
            (state / "compute_id").write_text(_node_uuid(host))  # Nova refuses a restart without
            write_ini(self.file.parent / f"{host}.conf", {"DEFAULT": {"host": host, "state_path": state}})

    def prepare(self) -> None:
        for words in (
            ("api_db", "sync"),
            ("cell_v2", "map_cell0"),
            ("cell_v2", "create_cell", "--name", "cell1"),
            ("db", "sync"),
        ):
            self.manage("nova-manage", *self.file_arguments, *words)

    def commands(self) -> dict[str, list[str]]:
        found = {name: [self.site.program(name), *self.file_arguments] for name in ("nova-conductor", "nova-scheduler")}
        for host in self.site.settings.compute_hosts:
            own = self.file.parent / f"{host}.conf"
            found[f"nova-{host}"] = [
                self.site.program("nova-compute"),
                *self.file_arguments,
                *("--config-file", str(own)),
            ]
        return found


def _node_uuid(host: str) -> str:
    """As `minios.virt` has it."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{host}.minios"))
