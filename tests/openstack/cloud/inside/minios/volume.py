"""Cinder's volume driver without storage: every operation succeeds at once.

Faults of kind "volume" (`faults.py`) delay an operation or let it fail, such as
{"kind": "volume", "op": "create_volume", "name": "^bad", "error": "disk full"}.
"""

import io
from typing import Any

from cinder import interface
from cinder.volume import driver

from minios import faults


@interface.volumedriver
class MiniVolumeDriver(driver.VolumeDriver):  # type: ignore[misc]
    VERSION = "1.0"

    def _check(self, op: str, volume: Any) -> None:
        faults.check("volume", op=op, uuid=volume.id, name=getattr(volume, "display_name", ""))

    def check_for_setup_error(self) -> None:
        pass

    def get_volume_stats(self, refresh: bool = False) -> dict[str, Any]:
        backend = self.configuration.safe_get("volume_backend_name")
        pool = {
            "pool_name": backend,
            "total_capacity_gb": 1000000,
            "free_capacity_gb": 1000000,
            "provisioned_capacity_gb": 0,
            "max_over_subscription_ratio": 1.0,
            "reserved_percentage": 0,
            "multiattach": True,
            "thin_provisioning_support": False,
            "thick_provisioning_support": True,
        }
        return {
            "volume_backend_name": backend,
            "vendor_name": "minios",
            "driver_version": self.VERSION,
            "storage_protocol": "fake",
            "pools": [pool],
        }

    def create_volume(self, volume: Any) -> None:
        self._check("create_volume", volume)

    def delete_volume(self, volume: Any) -> None:
        self._check("delete_volume", volume)

    def create_snapshot(self, snapshot: Any) -> None:
        self._check("create_snapshot", snapshot)

    def delete_snapshot(self, snapshot: Any) -> None:
        self._check("delete_snapshot", snapshot)

    def create_volume_from_snapshot(self, volume: Any, snapshot: Any) -> None:
        self._check("create_volume", volume)

    def create_cloned_volume(self, volume: Any, src_vref: Any) -> None:
        self._check("create_volume", volume)

    def clone_image(
        self, context: Any, volume: Any, image_location: Any, image_meta: Any, image_service: Any
    ) -> tuple[dict[str, Any], bool]:
        self._check("create_volume", volume)
        return {}, True  # "cloned": nothing is downloaded

    def copy_image_to_volume(
        self, context: Any, volume: Any, image_service: Any, image_id: Any, disable_sparse: bool = False
    ) -> None:
        pass

    def copy_volume_to_image(self, context: Any, volume: Any, image_service: Any, image_meta: Any) -> None:
        image_service.update(context, image_meta["id"], {}, io.BytesIO(b"mini"))

    def extend_volume(self, volume: Any, new_size: int) -> None:
        self._check("extend_volume", volume)

    def revert_to_snapshot(self, context: Any, volume: Any, snapshot: Any) -> None:
        self._check("revert_to_snapshot", volume)

    def retype(self, context: Any, volume: Any, new_type: Any, diff: Any, host: Any) -> tuple[bool, None]:
        return True, None

    def ensure_export(self, context: Any, volume: Any) -> None:
        pass

    def create_export(self, context: Any, volume: Any, connector: Any) -> None:
        pass

    def remove_export(self, context: Any, volume: Any) -> None:
        pass

    def initialize_connection(self, volume: Any, connector: Any) -> dict[str, Any]:
        self._check("initialize_connection", volume)
        return {"driver_volume_type": "fake", "data": {"volume_id": volume.id, "access_mode": "rw"}}

    def terminate_connection(self, volume: Any, connector: Any, **_: Any) -> None:
        self._check("terminate_connection", volume)
