"""Kinds of things that the service itself provides, without a cloud; see `builtin.kinds`."""

from homeostat.resources.families.access import DEPLOYED, KEY, USER
from homeostat.resources.families.configs import CONFIG
from homeostat.resources.families.deployments import DEPLOYMENT
from homeostat.resources.families.scaling import POLICY_KIND
from homeostat.resources.families.wait_conditions import CONDITION, HANDLE

KINDS = frozenset({CONFIG, DEPLOYMENT, HANDLE, CONDITION, USER, KEY, DEPLOYED, POLICY_KIND})
LISTED = frozenset({CONFIG, DEPLOYMENT})
"""The kinds with URLs of their own in the API: users can list and delete such things even if no stack has them."""
