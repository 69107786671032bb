"""Aliases under which plug-ins can import modules by Heat's names: `from heat.engine import properties`.

The aliases exist only on request, by `--heat-imports` or a call of `install`, and never if Heat is installed: modules
of both would be mixed.
"""

import logging
import sys
from importlib.util import find_spec
from types import ModuleType

from homeostat.plugins import (
    attributes,
    clients,
    constraints,
    exception,
    i18n,
    neutron,
    properties,
    resource,
    scheduler,
    stack_types,
    support,
    translation,
)

ALIASES = {
    "heat.common.exception": exception,
    "heat.common.i18n": i18n,
    "heat.engine.attributes": attributes,
    "heat.engine.clients.client_plugin": clients,
    "heat.engine.constraints": constraints,
    "heat.engine.properties": properties,
    "heat.engine.resource": resource,
    "heat.engine.resources.openstack.neutron.neutron": neutron,
    "heat.engine.resources.signal_responder": stack_types,
    "heat.engine.resources.stack_resource": stack_types,
    "heat.engine.resources.stack_user": stack_types,
    "heat.engine.rsrc_defn": resource,
    "heat.engine.scheduler": scheduler,
    "heat.engine.signal_responder": stack_types,
    "heat.engine.stack_resource": stack_types,
    "heat.engine.stack_user": stack_types,
    "heat.engine.support": support,
    "heat.engine.translation": translation,
    "heat.openstack.common.gettextutils": i18n,
    "heat.openstack.common.log": logging,
}
"""Heat's name of a module -> the module here."""


def install() -> bool:
    """Install the aliases in this process; return False, and do nothing, if Heat is installed."""
    # A package without a file was created by an earlier call.
    if "heat" in sys.modules:
        return getattr(sys.modules["heat"], "__file__", None) is None
    if find_spec("heat") is not None:
        return False
    for name, module in ALIASES.items():
        parent, _, last = name.rpartition(".")
        setattr(_package(parent), last, module)
        sys.modules[name] = module
    return True


def uninstall() -> None:
    """Remove the aliases."""
    for name in [module for module in sys.modules if module == "heat" or module.startswith("heat.")]:
        del sys.modules[name]


def _package(name: str) -> ModuleType:
    if name not in sys.modules:
        package = ModuleType(name, "Names of plug-ins; see homeostat.plugins.imports.")
        package.__path__ = []
        sys.modules[name] = package
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(_package(parent), last, package)
    return sys.modules[name]
