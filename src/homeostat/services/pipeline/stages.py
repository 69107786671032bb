"""The stages from a request to a checked desired state, in order."""

from collections.abc import Callable, Collection
from dataclasses import replace

from homeostat.desired.compiling import compile_desired
from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected, invalid
from homeostat.notifications.sinks import Sinks
from homeostat.resources.schema import UNKNOWN
from homeostat.services.client_check import ClientCheck, always_connected
from homeostat.services.graphs import Graphs, dependents
from homeostat.services.pipeline.checked import Checked
from homeostat.services.pipeline.checking import check, check_storable, missing
from homeostat.services.pipeline.expansion import Expansion, ExpansionLimits
from homeostat.services.pipeline.merging import Merger
from homeostat.services.pipeline.prerequisites import UNAVAILABLE, Prerequisites
from homeostat.services.pipeline.request import CheckTypes, StackRequest
from homeostat.services.pipeline.requirements import Remote, Requirements
from homeostat.store.stacks.contents import Content, address_of
from homeostat.templates import parse_template
from homeostat.templates.hidden_parameters import HiddenValues

NOT_STORED = "None"
"""Id of a stack that is only checked."""


class Pipeline:
    """Calls the stages.

    Args:
        prerequisites: Lookups in the users' clouds.
        sinks: Checks event sinks.
        check_url: Raises ValueError for a URL that this service may not poll.
        graphs: Keeps the graphs of checked contents.
    """

    def __init__(
        self,
        merger: Merger,
        prerequisites: Prerequisites,
        sinks: Sinks,
        check_url: Callable[[str], None],
        graphs: Graphs,
    ) -> None:
        self.graphs = graphs
        self._check_url = check_url
        self._merger = merger
        self._prerequisites = prerequisites
        self._sinks = sinks

    def run(
        self,
        identity: Identity,
        request: StackRequest,
        limits: ExpansionLimits,
        *,
        base: Content | None = None,
        strict: bool = True,
        ignored: Collection[str] = (),
    ) -> Checked:
        """Merge, compile and check a request.

        Args:
            base: The desired state that the request changes; None for a complete request.
            strict: Parameters must have values, and things named by the template must exist.
            ignored: Codes of errors to ignore.

        Raises:
            Rejected: Names the place and the remedy.
            Transient: The cloud does not answer.
            ClientGone: The client has disconnected.
        """
        merged = self._merger.replace(request) if base is None else self._merger.patch(base, request)
        return self.check(
            identity,
            merged,
            limits,
            check_types=request.check_types,
            check_client=request.check_client,
            internal_types=request.internal_types,
            strict=strict,
            ignored=ignored,
        )

    def check(
        self,
        identity: Identity,
        merged: Content,
        limits: ExpansionLimits,
        *,
        check_types: CheckTypes | None = None,
        check_client: ClientCheck = always_connected,
        internal_types: Collection[str] = (),
        strict: bool = True,
        ignored: Collection[str] = (),
    ) -> Checked:
        """Compile and check a whole desired state. For arguments and errors, see `run` and `StackRequest`."""
        check_storable(merged.template, "template")
        check_storable([merged.parameters, merged.environment], "parameters")
        self._sinks.check(identity.project, merged.sinks)
        expansion = Expansion(limits, check_client, internal_types, shows_disabled=not strict)
        checked = self._checked(identity, merged, expansion, strict=strict)
        needs = checked.needs
        if check_types is not None:
            check_types(needs.types)
        try:
            with HiddenValues.of(checked.compiled.parameters).refusals():
                services = UNAVAILABLE not in ignored
                self._prerequisites.check(identity.project, needs, strict=strict, check_services=services)
                self._check_remotes(identity.project, needs, Expansion(limits, check_client), strict=strict)
                self._check_urls(needs)
        except Rejected as error:
            raise checked.compiled.version.dialect.worded(error) from error
        return checked

    def _checked(self, identity: Identity, merged: Content, expansion: Expansion, *, strict: bool) -> Checked:
        """Compile a desired state and check its whole tree against the types; equal content only once while in memory.

        All that lies outside the content (the cloud, URLs, sinks, the caller's types) is checked each time, by the
        requirements.

        Raises:
            Rejected: Names the place.
        """
        address = address_of(merged) if strict and identity.stack_id != NOT_STORED else None
        known = self.graphs.peek(identity.stack_id, address) if address is not None else None
        if isinstance(known, Checked) and known.terms == expansion.terms:
            return known
        needs = Requirements()
        compiled = compile_desired(merged, identity, strict=strict, allowance=expansion.allowance)
        definitions = check(compiled, merged, needs=needs, expansion=expansion)
        expansion.close()
        checked = Checked(
            replace(merged, template=compiled.raw),
            compiled=compiled,
            definitions=definitions,
            required_by=dependents(definitions),
            needs=needs,
            terms=expansion.terms,
            expanded=expansion.expanded,
        )
        if address is not None:
            self.graphs.put(identity.stack_id, address, checked, checked.size)
        return checked

    def _check_urls(self, needs: Requirements) -> None:
        """Check URLs that the service will poll. Raise Rejected."""
        for url, path in needs.urls.items():
            try:
                self._check_url(url)
            except ValueError as error:
                raise invalid(f"{url}: {error}", *path, error="Property error") from error

    def _check_remotes(self, project: str, needs: Requirements, expansion: Expansion, *, strict: bool) -> None:
        """Check stacks that the template creates independently, here or in other regions. Raise Rejected."""
        if not needs.remotes:
            return
        remotes = list(needs.remotes.values())
        regions = self._prerequisites.regions(project, remotes)
        for remote in remotes:
            # Other regions check their stacks themselves (`validate`).
            if regions.is_own(remote) and remote.template is not None:
                try:
                    self._check_own(project, remote, expansion)
                except Rejected as error:
                    raise regions.refusal(remote, str(error)) from error
        if strict:
            regions.validate(remotes)

    def _check_own(self, project: str, remote: Remote, expansion: Expansion) -> None:
        """Check a stack that this service will create."""
        expansion.check_client()
        known = {name: value for name, value in remote.parameters.items() if value is not UNKNOWN}
        template = parse_template(remote.template or "")
        merged = self._merger.complete(Content("template", template, known, files=remote.files))
        identity = Identity(NOT_STORED, NOT_STORED, project)
        compiled = compile_desired(merged, identity, strict=False, allowance=expansion.allowance)
        expansion.expanding(compiled)
        lacking = [
            parameter.name for parameter in compiled.parameters.values() if missing(parameter, remote.parameters)
        ]
        if lacking:
            raise Rejected("UserParameterMissing", f"The Parameter ({lacking[0]}) was not provided.")
        needs = Requirements()
        check(compiled, merged, needs=needs, expansion=expansion)
        self._prerequisites.check_types(project, needs.types)
