"""Finds plug-ins: modules with `resource_mapping()`, from entry points and directories.

A module has `available_resource_mapping()`, or else `resource_mapping()`: type name -> class; and optionally
`constraint_mapping()`: constraint name -> class. A plug-in that cannot be loaded is left out, logged, and listed as a
problem.
"""

import importlib.util
import logging
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from homeostat.plugins import clients, constraints, imports
from homeostat.plugins.resource import Resource
from homeostat.plugins.types import PluginType, plugin_type
from homeostat.resources import registry
from homeostat.resources.discovery import Offer, PluginProblem, loaded

LOG = logging.getLogger(__name__)
GROUP = "homeostat.plugins"
PACKAGE = "homeostat_plugin_files"
MAPPINGS = ("available_resource_mapping", "resource_mapping", "constraint_mapping")
NO_PLUGINS = ("__init__", "setup", "test", "tests")
"""Names of modules within packages that are not plug-ins."""


@dataclass(slots=True)
class Plugins:
    """The plug-ins that were found.

    Attributes:
        offers: Their types.
        problems: Plug-ins and types left out, with reasons.
    """

    offers: list[Offer] = field(default_factory=list)
    problems: list[PluginProblem] = field(default_factory=list)

    def take(self, origin: str, module: Any) -> None:
        """Add the types and constraints of a module."""
        mapping = _first(module, "available_resource_mapping", "resource_mapping")
        constraint_mapping = _first(module, "constraint_mapping")
        if mapping is None and constraint_mapping is None:
            self._leave_out(origin, "it has neither resource_mapping() nor constraint_mapping()")
        constraints.CUSTOM.update(self._mapping_of(origin, constraint_mapping))
        types = []
        for name, plugin_class in self._mapping_of(origin, mapping).items():
            try:
                types.append(plugin_type(name, plugin_class))
            except Exception as error:
                LOG.exception("the type %s of %s cannot be made", name, origin)
                self.problems.append(PluginProblem(origin, f"{name} cannot be made: {error!r}"))
        self.offers.append(Offer(origin, types))

    def _mapping_of(self, origin: str, mapping: Any) -> Mapping[str, Any]:
        if mapping is None:
            return {}
        try:
            entries = mapping()
        except (Exception, SystemExit) as error:  # a plug-in must not end the service
            LOG.exception("%s of %s failed", mapping.__name__, origin)
            self.problems.append(PluginProblem(origin, f"{mapping.__name__}() failed: {error!r}"))
            return {}
        if not isinstance(entries, Mapping):
            self._leave_out(origin, f"{mapping.__name__}() gives {entries!r}, not a map of names to classes")
            return {}
        return entries

    def _leave_out(self, origin: str, reason: str) -> None:
        LOG.error("left out of %s: %s", origin, reason)
        self.problems.append(PluginProblem(origin, reason))

    def read(self, directory: Path) -> None:
        """Load every module of a directory, in the order of names.

        If a package defines no types itself, its inner modules are loaded.
        """
        if not directory.is_dir():
            self._leave_out(str(directory), "there is no such directory")
            return
        for path in sorted([*directory.glob("*.py"), *directory.glob("*/__init__.py")]):
            if path.name == "__init__.py" and path.parent == directory:
                continue
            module = self._load(path, partial(_imported, path))
            if module is None:
                continue
            inner = _modules_within(module) if not _is_plugin(module) else []
            if not inner:
                self.take(str(path), module)
            for name, file in inner:
                part = self._load(file, partial(importlib.import_module, name))
                if part is not None and _is_plugin(part):
                    self.take(str(file), part)

    def _load(self, path: Path, load: Callable[[], ModuleType]) -> ModuleType | None:
        try:
            return load()
        except (Exception, SystemExit) as error:
            LOG.exception("the plug-in %s cannot be loaded", path)
            self.problems.append(PluginProblem(str(path), f"it cannot be loaded: {error!r}"))
            return None


def _first(module: Any, *names: str) -> Any:
    return next((function for name in names if (function := getattr(module, name, None)) is not None), None)


def _is_plugin(module: ModuleType) -> bool:
    return _first(module, *MAPPINGS) is not None


def _modules_within(package: ModuleType) -> list[tuple[str, Path]]:
    """Return the names and files of the modules within a package and its packages, except tests."""
    pending = [(package.__name__, Path(folder)) for folder in getattr(package, "__path__", ())]
    modules = []
    while pending:
        name, folder = pending.pop()
        for path in sorted(folder.glob("*.py")):
            if path.stem not in NO_PLUGINS:
                modules.append((f"{name}.{path.stem}", path))
        pending += [
            (f"{name}.{inner.name}", inner)
            for inner in sorted(folder.iterdir())
            if inner.name not in NO_PLUGINS and (inner / "__init__.py").is_file()
        ]
    return modules


def find(directories: Iterable[Path] = ()) -> Plugins:
    """Find the plug-ins of installed packages (entry point group `homeostat.plugins`), and of directories."""
    plugins = Plugins()
    packages = loaded(GROUP)
    plugins.problems += [*packages.problems, *clients.problems()]
    for origin, module in packages.things:
        plugins.take(origin, module)
    for directory in directories:
        plugins.read(directory)
    return plugins


def install(directories: Iterable[Path] = (), *, heat_imports: bool = False) -> Plugins:
    """Find plug-ins, and register their types; called once, before types are used.

    Args:
        directories: Directories with plug-ins.
        heat_imports: Let plug-ins import `heat.engine` and `heat.common` (see `plugins.imports`).
    """
    if heat_imports:
        imports.install()
    plugins = find(directories)
    registry.add(plugins.offers, plugins.problems)
    return plugins


def classes() -> dict[str, type[Resource]]:
    """Return the classes with handlers of all registered types, by type name."""
    return {name: kind.plugin_class for name, kind in registry.types().items() if isinstance(kind, PluginType)}


def _imported(path: Path) -> ModuleType:
    """Import a file under a unique module name, so that two directories may have files of the same name."""
    is_package = path.name == "__init__.py"
    stem = path.parent.name if is_package else path.stem
    name = f"{PACKAGE}.{zlib.crc32(str(path.parent.parent if is_package else path.parent).encode()):08x}.{stem}"
    where = [str(path.parent)] if is_package else None
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=where)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
