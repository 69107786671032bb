"""Checks stacks that a template creates independently (`OS::Heat::Stack`), here or in other regions."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from homeostat.clouds.heat_api import KIND, OWN, REGION_KIND, VALIDATE
from homeostat.clouds.port import Cloud, Operation
from homeostat.desired.graphs import files_named
from homeostat.model.errors import HomeostatError, Rejected, invalid
from homeostat.resources.custom_constraints import Path
from homeostat.resources.schema import UNKNOWN
from homeostat.templates.tree import holds

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Remote:
    """One such stack.

    Attributes:
        region: "" for the service's own.
        template: Its text; None where it is not known yet.
        parameters: Unknown values are `UNKNOWN`.
        files: Files that the template names.
        path: Of the resource's properties.
    """

    region: str
    template: str | None
    parameters: Mapping[str, Any]
    files: Mapping[str, str]
    path: Path

    def wrong(self, problem: str) -> Rejected:
        return invalid(problem, *self.path, "template", error="Property error")


def remote_of(values: Mapping[str, Any], files: Mapping[str, str], path: Path) -> Remote:
    """Return the stack that a resource creates.

    Args:
        values: Coerced properties of the resource.
        files: Files of the stack that the resource belongs to.
        path: Of the resource.
    """
    context, template, parameters = (values.get(name) for name in ("context", "template", "parameters"))
    region = context.get("region_name") if isinstance(context, Mapping) else context
    text = template if isinstance(template, str) and region is not UNKNOWN else None
    return Remote(
        region if isinstance(region, str) else "",
        text,
        parameters if isinstance(parameters, Mapping) else {},
        files_named(values, files) if text is not None else {},
        (*path, "properties"),
    )


def check_remotes(
    cloud: Cloud | None, remotes: Sequence[Remote], here: Callable[[Remote], None], *, asks: bool
) -> None:
    """Raise Rejected naming the first stack that cannot be created in its region.

    A region that does not answer does not block the request.

    Args:
        cloud: Of the project; None where there is none to ask.
        here: Checks a stack of this service; raises Rejected.
        asks: Ask other regions to validate their stacks.
    """
    names = sorted({each.region for each in remotes} - {"", OWN})
    knows = cloud is not None and REGION_KIND in cloud.kinds
    known = dict(zip(names, cloud.resolve(REGION_KIND, names), strict=True)) if cloud is not None and knows else {}
    elsewhere = []
    for each in remotes:
        region = known.get(each.region, OWN if each.region in ("", OWN) else each.region)
        if region is None:
            message = f"region {each.region} is not known here; the operator adds it with --region"
            raise invalid(message, *each.path, "context", "region_name", error="Property error")
        if each.template is None:
            continue
        if region != OWN:
            elsewhere.append(each)
            continue
        try:
            here(each)
        except Rejected as error:
            raise each.wrong(str(error)) from error
    if cloud is not None and knows and asks and elsewhere:
        _ask(cloud, elsewhere)


def _ask(cloud: Cloud, remotes: Sequence[Remote]) -> None:
    answers = cloud.operate(KIND, [Operation("", VALIDATE, _spec(each)) for each in remotes])
    for each, answer in zip(remotes, answers, strict=True):
        if isinstance(answer, Rejected):
            raise each.wrong(answer.detail)
        if isinstance(answer, HomeostatError):
            LOG.warning(
                "%s: it is not known whether the stack can be created: %s", ".".join(map(str, each.path)), answer
            )


def _spec(remote: Remote) -> dict[str, Any]:
    """Return the stack's known input, as the other region's validation takes it."""
    known = {name: value for name, value in remote.parameters.items() if not holds(value, UNKNOWN)}
    return {"region": remote.region, "template": remote.template, "parameters": known, "files": dict(remote.files)}
