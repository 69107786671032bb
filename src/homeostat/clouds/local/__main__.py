"""Look at a local cloud, or clear it away: `python -m homeostat.clouds.local ROOT [list | destroy]`."""

import argparse
from pathlib import Path

from homeostat.clouds.local.cloud import LocalCloud


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m homeostat.clouds.local", description=__doc__)
    parser.add_argument("root", type=Path, help="directory of the cloud")
    parser.add_argument("verb", choices=("list", "destroy"), nargs="?", default="list")
    arguments = parser.parse_args()
    if not arguments.root.is_dir():
        parser.error(f"there is no directory {arguments.root}")
    cloud = LocalCloud(arguments.root)
    if arguments.verb == "destroy":
        cloud.destroy()
        return
    for kind in sorted(cloud.kinds):
        for seen in cloud.observe(kind, cloud.handles(kind)):
            fields = seen.properties
            place = fields.get("address") or fields.get("vip_address") or fields.get("floating_ip_address") or ""
            print(f"{kind:24} {seen.handle:36} {fields.get('status', ''):10} {place:16} {fields.get('name', '')}")
    for id, status, name in cloud.snapshots():
        print(f"{'snapshot':24} {id:36} {status:10} {'':16} {name}")
    cloud.close()


if __name__ == "__main__":
    main()
