"""The second stage: a request completed to a whole desired state."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from homeostat.model.errors import Rejected
from homeostat.model.limits import ENVIRONMENT, FILES
from homeostat.services.pipeline.fetching import with_fetched
from homeostat.services.pipeline.request import StackRequest
from homeostat.store.schema import json_size
from homeostat.store.stacks.contents import Content
from homeostat.templates import (
    declared_in,
    parse_template,
)
from homeostat.templates.environments import user_sections
from homeostat.templates.registry import without_nulls
from homeostat.templates.shared_environments import SharedEnvironment


class Merger:
    """Completes requests.

    Args:
        shared: The operator's environment, which applies to all stacks.
        fetch: Returns the text at a URL.
    """

    def __init__(self, shared: SharedEnvironment, fetch: Callable[[str], str]) -> None:
        self._shared = shared
        self._fetch = fetch

    def replace(self, request: StackRequest) -> Content:
        """Return the desired state of a complete request. Raise Rejected without a template."""
        if request.template is None:
            raise Rejected("HTTPBadRequest", "No template specified")
        parsed = request.template if isinstance(request.template, Mapping) else parse_template(request.template)
        environment = _without_nulls(request.environment)
        return self.complete(Content("template", parsed, request.parameters, environment, request.files))

    def patch(self, before: Content, request: StackRequest) -> Content:
        """Return `before` with `request` applied on top; stored parameters that the new template lacks are dropped."""
        return self.complete(_patched(before, request))

    def complete(self, content: Content) -> Content:
        """Add the operator's shared environment, and the templates that are named by URL."""
        shared = self._shared
        # The stored environment of a PATCH has the shared sections of that time, which may have changed since.
        environment = {**user_sections(content.environment), **shared.section()}
        completed = replace(content, environment=environment, files={**shared.files, **content.files})
        # Before URLs are fetched, too: an oversized request is not worth the fetching.
        checked_size(completed)
        return checked_size(with_fetched(completed, self._fetch))


def checked_size(content: Content) -> Content:
    """Return the desired state if its parts are within the limits. Raise Rejected (RequestLimitExceeded) otherwise."""
    # The limits of the request itself do not suffice: a PATCH adds the stored parts, URLs add their templates.
    FILES.check(0, 0, sum(len(text.encode()) for text in content.files.values()), len(content.files))
    ENVIRONMENT.check(0, 0, json_size([content.environment, content.parameters]), 0)
    return content


def _patched(before: Content, request: StackRequest) -> Content:
    """Merge as `Merger.patch` does, without completing the result."""
    template = before.template if request.template is None else request.template
    parsed = template if isinstance(template, Mapping) else parse_template(template)
    stored = _values(before.environment, before.parameters)
    declared = declared_in(parsed, "parameters")
    retained = {
        name: value for name, value in stored.items() if name not in request.clear_parameters and name in declared
    }
    environment = {
        section: _merged(before.environment.get(section), request.environment.get(section))
        for section in {*before.environment, *request.environment} - {"parameters"}
    }
    parameters = retained | _values(request.environment, request.parameters)
    return Content("template", parsed, parameters, _without_nulls(environment), {**before.files, **request.files})


def _merged(before: Any, requested: Any) -> Any:
    """Merge one section of the environment: maps are merged, anything else is replaced if requested."""
    if isinstance(before, Mapping) and isinstance(requested, Mapping):
        return {**before, **requested}
    return before if requested is None else requested


def _without_nulls(environment: Mapping[str, Any]) -> dict[str, Any]:
    """Return the environment without the registry entries that its nulls remove."""
    section = environment.get("resource_registry")
    return {**environment, "resource_registry": without_nulls(section)} if section else dict(environment)


def _values(environment: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameter values; those outside the environment take precedence."""
    return {**environment.get("parameters", {}), **parameters}
