"""The local cloud: `LocalCloud(root)` is the port's adapter for this machine."""

from homeostat.clouds.local.cloud import LocalCloud

__all__ = ["LocalCloud"]
