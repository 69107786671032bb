"""Glance, with images in files."""

import shutil

from tests.openstack.cloud.files import Sections
from tests.openstack.cloud.services.service import Endpoint, Service


class Glance(Service):
    name = "glance"
    apis = {"glance-api": "glance.wsgi.api"}
    databases = ("glance",)
    endpoints = {"image": Endpoint("glance-api", "glance")}
    optional = False

    def configuration(self) -> Sections:
        images = self.state("images")
        images.mkdir(parents=True, exist_ok=True)
        found = self.shared.sections("glance")
        found["DEFAULT"] |= {
            "enabled_backends": "mini:file",
            "worker_self_reference_url": self.site.url("glance-api"),
        }
        return found | {
            "glance_store": {"default_backend": "mini"},
            "mini": {"filesystem_store_datadir": images},
            "os_glance_staging_store": {"filesystem_store_datadir": self.state()},
            "os_glance_tasks_store": {"filesystem_store_datadir": self.state()},
            "paste_deploy": {"flavor": "keystone", "config_file": self.packaged("glance", "glance-api-paste.ini")},
        }

    def write_files(self) -> None:
        shutil.copy(self.file, self.file.with_name("glance-api.conf"))  # the name that the API looks for

    def prepare(self) -> None:
        self.manage("glance-manage", *self.file_arguments, "db_sync")
