"""Clients of external services, as handlers use them: `self.client()`, `self.client_plugin("neutron")`.

The service itself provides none. A package registers a class under the entry point group `homeostat.clients` (or
`heat.clients`); the class has `client()` or `_create()`, and classifies the errors of its client.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from homeostat.plugins.exception import EntityNotFound, NotFound, NotSupported
from homeostat.resources.discovery import PluginProblem, loaded

GROUPS = ("homeostat.clients", "heat.clients")
_made_here: dict[str, type] = {}
CLIENT_OPTIONS = {"endpoint_type": "publicURL", "insecure": False}


@cache
def _classes() -> tuple[dict[str, type], tuple[PluginProblem, ...]]:
    classes: dict[str, type] = {}
    problems: list[PluginProblem] = []
    for group in GROUPS:
        plugins = loaded(group)
        problems += plugins.problems
        for origin, client_class in plugins.things:
            classes.setdefault(origin.rpartition("(")[2].rstrip(")"), client_class)
    return classes, tuple(problems)


def register(name: str, client_class: type) -> None:
    """Register a client class for the rest of this process; it takes precedence over classes of packages."""
    _made_here[name] = client_class


def problems() -> tuple[PluginProblem, ...]:
    return _classes()[1]


class ClientPlugin:
    """Base class of client classes; a subclass overrides `_create`, which returns the client.

    Attributes:
        exceptions_module: The module, or modules, of the client library whose classes `NotFound`, `Conflict` and so on
            are recognised by name.
    """

    exceptions_module: Any = None
    service_types: list[str] = []

    def __init__(self, context: Any) -> None:
        self.context = context
        self._client: Any = None

    def client(self, version: Any = None) -> Any:
        if self._client is None:
            self._client = self._create() if version is None else self._create(version)
        return self._client

    def _create(self, version: Any = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not say how its client is made")

    def is_not_found(self, error: BaseException) -> bool:
        return isinstance(error, EntityNotFound | NotFound) or self._is(error, "NotFound", "HTTPNotFound")

    def is_over_limit(self, error: BaseException) -> bool:
        return self._is(error, "OverLimit", "RequestEntityTooLarge", "TooManyRequests")

    def is_conflict(self, error: BaseException) -> bool:
        return self._is(error, "Conflict", "HTTPConflict")

    def is_client_exception(self, error: BaseException) -> bool:
        return any(type(error).__module__ == module.__name__ for module in self._modules())

    def _modules(self) -> list[Any]:
        modules = self.exceptions_module
        return [] if modules is None else list(modules) if isinstance(modules, list | tuple) else [modules]

    def _is(self, error: BaseException, *names: str) -> bool:
        classes = [getattr(module, name, None) for module in self._modules() for name in names]
        return isinstance(error, tuple(error_class for error_class in classes if isinstance(error_class, type)))

    @property
    def ignore_not_found(self) -> "Ignoring":
        return Ignoring(self.is_not_found)

    @property
    def ignore_conflict_and_not_found(self) -> "Ignoring":
        return Ignoring(lambda error: self.is_conflict(error) or self.is_not_found(error))

    def url_for(self, **_: Any) -> str:
        """Refuse: the service has no login for plug-ins, and so no service catalogue.

        Raises:
            NotSupported: Always.
        """
        raise NotSupported(feature=f"The service catalogue: url_for of {type(self).__name__}")

    @staticmethod
    def _get_client_option(client: str, option: str) -> Any:
        """Return an option of the client's configuration, the same for all clients; None if there is no such option."""
        return CLIENT_OPTIONS.get(option)


class Ignoring:
    """Ignores some errors, in both forms that plug-ins use.

    `with ignoring:` suppresses them in a block; `ignoring(error)` in an `except` clause re-raises all unexpected
    errors.
    """

    def __init__(self, is_ignored: Callable[[Exception], bool]) -> None:
        self._is_ignored = is_ignored

    def __enter__(self) -> "Ignoring":
        return self

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> bool:
        return isinstance(error, Exception) and self._is_ignored(error)

    def __call__(self, error: Exception) -> None:
        if not self._is_ignored(error):
            raise error


class Missing:
    """The stand-in for a missing client: every use raises EntityNotFound.

    A plug-in without its client can thus still be loaded and validated.
    """

    def __init__(self, name: str | None) -> None:
        self.missing = name or "(default_client_name is not set)"

    def __getattr__(self, attribute: str) -> Any:
        raise EntityNotFound(entity="Client", name=self.missing)


class Clients:
    """The clients for one context, each created on first use."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._made: dict[str, Any] = {}

    def client_plugin(self, name: str | None) -> Any:
        """Return the plug-in of a client; `Missing` if no package provides it."""
        client_class = _made_here.get(name or "") or _classes()[0].get(name or "")
        if name is None or client_class is None:
            return Missing(name)
        if name not in self._made:
            self._made[name] = client_class(self._context)
        return self._made[name]

    def client(self, name: str | None) -> Any:
        return self.client_plugin(name).client()
