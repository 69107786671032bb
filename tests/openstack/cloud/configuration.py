"""Writing what the services, and their clients, read."""

import json
import shutil
from collections.abc import Sequence

from tests.openstack.cloud.files import write_ini
from tests.openstack.cloud.services.service import REGION, Service
from tests.openstack.cloud.site import PASSWORD, Site

USER = "minios"
ADMIN = "minios-admin"
"""Names in clouds.yaml."""


def write(site: Site, services: Sequence[Service]) -> list[Service]:
    """Write what they read; return the services whose own file has changed."""
    changed = []
    for each in services:
        each.state("lock").mkdir(parents=True, exist_ok=True)
        before = each.file.read_bytes() if each.file.exists() else b""
        write_ini(each.file, each.configuration())
        changed += [each] if each.file.read_bytes() != before else []
        each.write_files()
        link = site.run("home", f".{each.name}")
        if each.optional and not link.is_symlink():
            link.symlink_to(each.file.parent)
    _write_entry_points(site, services)
    accounts = {USER: "demo", ADMIN: "admin"}
    clouds = {name: {"region_name": REGION, "auth": _auth(site, account)} for name, account in accounts.items()}
    site.clouds_yaml.write_text(json.dumps({"clouds": clouds}, indent=2) + "\n")
    return changed


def _auth(site: Site, account: str) -> dict[str, str]:
    return {
        "auth_url": site.url("keystone", "/v3"),
        "username": account,
        "password": PASSWORD,
        "project_name": account,
        "user_domain_id": "default",
        "project_domain_id": "default",
    }


def _write_entry_points(site: Site, services: Sequence[Service]) -> None:
    """By which the services find our plug-ins, as if those were installed."""
    info = site.run("lib", "minios-1.0.dist-info")
    info.mkdir(parents=True, exist_ok=True)
    # stevedore takes two states of this within two minutes for the same.
    shutil.rmtree(site.run("home", ".cache", "python-entrypoints"), ignore_errors=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: minios\nVersion: 1.0\n")
    groups = {group: {"minios": plugin} for each in services for group, plugin in each.plugins.items()}
    write_ini(info / "entry_points.txt", groups)
