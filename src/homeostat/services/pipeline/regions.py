"""Regions in which a template creates stacks independently (`OS::Heat::Stack`)."""

import logging
from collections.abc import Sequence
from typing import Any

from homeostat.clouds.heat_api import KIND, REGION_KIND, VALIDATE
from homeostat.clouds.port import Cloud, Operation
from homeostat.clouds.regions import OWN
from homeostat.model.errors import HomeostatError, Rejected, dotted, invalid
from homeostat.resources.schema import UNKNOWN
from homeostat.services.pipeline.requirements import Remote
from homeostat.templates.tree import holds

LOG = logging.getLogger(__name__)


class Regions:
    """The regions that a project's cloud knows, where stacks are created independently.

    Args:
        cloud: The project's cloud; None if absent.
        remotes: The stacks whose regions are looked up.
    """

    def __init__(self, cloud: Cloud | None, remotes: Sequence[Remote]) -> None:
        names = sorted({remote.region for remote in remotes} - {"", OWN})
        self._is_only = len(remotes) == 1
        self._cloud = cloud if cloud is not None and REGION_KIND in cloud.kinds else None
        known = [] if self._cloud is None else self._cloud.resolve(REGION_KIND, names)
        self._known = dict(zip(names, known, strict=self._cloud is not None))

    def is_own(self, remote: Remote) -> bool:
        """Return whether the stack is created by this service. Raise Rejected for an unknown region."""
        own = OWN if remote.region in ("", OWN) else remote.region
        region = self._known.get(remote.region, own)
        if region is None:
            cause = f"public endpoint for orchestration service in {remote.region} region not found"
            message = f'Cannot establish connection to Heat endpoint at region "{remote.region}" due to "{cause}"'
            raise invalid(f"{message}: the operator adds it with --region ({dotted(remote.path)}.context.region_name)")
        return region == OWN

    def refusal(self, remote: Remote, problem: str) -> Rejected:
        """Return the error for a stack that cannot be created."""
        # Heat's clients compare the text for a single stack, so it has no place then.
        message = f'Failed validating stack template using Heat endpoint at region "{remote.region or OWN}" due to '
        place = () if self._is_only else (*remote.path, "template")
        return invalid(f'{message}"ERROR: {problem}"', *place, error="" if self._is_only else "Property error")

    def validate(self, remotes: Sequence[Remote]) -> None:
        """Let other regions validate their stacks. Raise Rejected naming the first invalid stack.

        A region that does not answer does not block the request.
        """
        elsewhere = [remote for remote in remotes if remote.template is not None and not self.is_own(remote)]
        if self._cloud is not None and elsewhere:
            self._validate(self._cloud, elsewhere)

    def _validate(self, cloud: Cloud, remotes: Sequence[Remote]) -> None:
        answers = cloud.operate(KIND, [Operation("", VALIDATE, _spec(remote)) for remote in remotes])
        for remote, answer in zip(remotes, answers, strict=True):
            if isinstance(answer, Rejected):
                raise self.refusal(remote, answer.detail)
            if isinstance(answer, HomeostatError):
                LOG.warning("%s: it is not known whether the stack can be created: %s", dotted(remote.path), answer)


def _spec(remote: Remote) -> dict[str, Any]:
    """Return the stack's known input, as the other region's validation takes it."""
    known = {name: value for name, value in remote.parameters.items() if not holds(value, UNKNOWN)}
    return {"region": remote.region, "template": remote.template, "parameters": known, "files": dict(remote.files)}
