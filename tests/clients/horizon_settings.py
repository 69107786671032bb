"""Settings of the Horizon that tests start: `scripts/horizon` makes them its `local_settings.py`."""

import os

from openstack_dashboard.settings import HORIZON_CONFIG

HORIZON_CONFIG["user_home"] = "/project/stacks/"
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1"]
OPENSTACK_KEYSTONE_URL = os.environ.get("OS_AUTH_URL", "")
TIME_ZONE = "UTC"
COMPRESS_OFFLINE = True
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
SESSION_ENGINE = "django.contrib.sessions.backends.cache"
HORIZON_IMAGES_UPLOAD_MODE = "off"
