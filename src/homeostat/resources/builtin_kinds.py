"""Kinds of things that the service keeps itself, see `builtin.cloud`."""

from homeostat.resources.families.access import DEPLOYED, KEY, USER
from homeostat.resources.families.configs import CONFIG
from homeostat.resources.families.deployments import DEPLOYMENT
from homeostat.resources.families.scaling import POLICY_KIND
from homeostat.resources.families.wait_conditions import CONDITION, HANDLE

KINDS = frozenset({CONFIG, DEPLOYMENT, HANDLE, CONDITION, USER, KEY, DEPLOYED, POLICY_KIND})
LISTED = frozenset({CONFIG, DEPLOYMENT})
"""Those that have addresses of their own in the API: users see and delete them also where no stack has them."""
