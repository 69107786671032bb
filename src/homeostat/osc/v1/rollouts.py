"""`openstack stack rollout …`: show and steer rollouts of metadata, or definitions, to the members of a group (RU8)."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from typing import Any

from osc_lib.command.command import Lister, ShowOne
from osc_lib.exceptions import CommandError

from homeostat.osc.service import Service, Wire, resource_of, service_of, until
from homeostat.osc.v1.arguments import add_resource, add_stack, add_wait, teach

ALL_LEVELS = 1000
Shown = tuple[tuple[str, ...], tuple[Any, ...]]
COLUMNS = ("Resource", "State", "Step", "Updated", "Total", "Failed", "Waits For", "Seconds Left")


class ListRollouts(Lister):
    """List the rollouts in progress of a stack and of its nested stacks"""

    def get_parser(self, prog_name: str) -> ArgumentParser:
        parser = super().get_parser(prog_name)
        add_stack(parser)
        return teach(parser, "openstack stack rollout list web")

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
        service = service_of(self)
        place = service.stack(parsed_args.stack)
        path: str | None = f"{place}/rollouts?nested_depth={ALL_LEVELS}"
        rollouts: list[Wire] = []
        while path is not None:
            page = service.get(path)
            rollouts += page["rollouts"]
            path = service.next_of(page)
        return COLUMNS, map(_row, rollouts)


class _OnRollout(ShowOne):
    """A command on the rollout of a group."""

    examples: Sequence[str] = ()

    def get_parser(self, prog_name: str) -> ArgumentParser:
        parser = super().get_parser(prog_name)
        add_stack(parser)
        add_resource(parser)
        return teach(parser, *self.examples)

    def take_action(self, parsed_args: Namespace) -> Shown:
        service = service_of(self)
        place = resource_of(service.stack(parsed_args.stack), parsed_args.resource)
        return _shown(self.answer(service, f"{place}/rollout", parsed_args))

    def answer(self, service: Service, path: str, parsed_args: Namespace) -> Wire:
        """Send the request; return the rollout."""
        raise NotImplementedError


class ShowRollout(_OnRollout):
    """Show the rollout of a group: its progress, its waits, the reports of failed members, and the commands for it

    The resource is a group whose members are reached step by step (its property `metadata_update_pattern`).
    """

    examples = ("openstack stack rollout show web fleet", "openstack stack rollout show web fleet -f value -c state")

    def answer(self, service: Service, path: str, parsed_args: Namespace) -> Wire:
        return dict(service.get(path)["rollout"])


class _Steer(_OnRollout):
    verb = ""

    def answer(self, service: Service, path: str, parsed_args: Namespace) -> Wire:
        return dict(service.post(path, {self.verb: None})["rollout"])


class PauseRollout(_Steer):
    """Pause the rollout of a group: members stay as they are until it is resumed"""

    verb = "pause"
    examples = ("openstack stack rollout pause web fleet",)


class ResumeRollout(_Steer):
    """Resume the rollout of a group that is paused or held

    Failures so far are accepted, and the members of the step get their time once more.
    """

    verb = "resume"
    examples = ("openstack stack rollout resume web fleet",)


class ApproveRollout(_OnRollout):
    """Approve a step of a rollout, so that the next step begins"""

    examples = ("openstack stack rollout approve web fleet", "openstack stack rollout approve --step 2 web fleet")

    def get_parser(self, prog_name: str) -> ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("--step", metavar="<number>", type=int, help="Approve this step and no other")
        return parser

    def answer(self, service: Service, path: str, parsed_args: Namespace) -> Wire:
        body = {} if parsed_args.step is None else {"step": parsed_args.step}
        return dict(service.post(f"{path}/approval", body)["rollout"])


class _End(_Steer):
    """A command that ends a rollout, and may wait for the group."""

    wanted = "FAILED"
    """Expected final status of the group."""

    def get_parser(self, prog_name: str) -> ArgumentParser:
        parser = super().get_parser(prog_name)
        add_wait(parser, "the group is at rest")
        return parser

    def answer(self, service: Service, path: str, parsed_args: Namespace) -> Wire:
        ended = super().answer(service, path, parsed_args)
        if parsed_args.wait:
            place = path.removesuffix("/rollout")
            group = until(lambda: _at_rest(service, place), parsed_args.timeout, f"{ended['resource_name']} is busy")
            if not group["resource_status"].endswith(self.wanted):
                reason = group["resource_status_reason"]
                raise CommandError(f"{ended['resource_name']} is {group['resource_status']}: {reason}")
        return ended


class PromoteRollout(_End):
    """Roll out to all members of a group now, whatever they report"""

    verb, wanted = "promote", "COMPLETE"
    examples = ("openstack stack rollout promote --wait web fleet",)


class AbortRollout(_End):
    """End the rollout of a group at its present step: some members are updated, and the stack fails"""

    verb = "abort"
    examples = ("openstack stack rollout abort web fleet",)


class RollBackRollout(_End):
    """Return all members of a group to their state before the rollout; the stack fails"""

    verb = "roll_back"
    examples = ("openstack stack rollout rollback --wait web fleet",)


def _at_rest(service: Service, place: str) -> Wire | None:
    group: Wire = service.get(place)["resource"]
    return None if group["resource_status"].endswith("IN_PROGRESS") else group


def _row(rollout: Wire) -> tuple[Any, ...]:
    members = rollout["members"]
    return (
        "/".join(rollout["path"]),
        rollout["state"],
        rollout["step"],
        members["updated"],
        members["total"],
        rollout["failures"]["count"],
        rollout["waits_for"],
        rollout["seconds_left"],
    )


def _shown(rollout: Wire) -> Shown:
    members, failures = rollout["members"], rollout["failures"]
    failed: list[Wire] = failures["members"]
    reasons = {member["resource_name"] or member["physical_resource_id"]: member["reason"] for member in failed}
    fields: Wire = {
        **{name: rollout[name] for name in ("stack_name", "resource_name", "state", "pattern", "step")},
        "members": members["total"],
        "updated": members["updated"],
        **{f"step_{name}": count for name, count in members["step"].items()},
        "failures": failures["count"],
        "failures_max": failures["max"],
        "said": reasons,
        "reason": rollout["reason"],
        "waits_for": rollout["waits_for"],
        "released_by": rollout["released_by"],
        **{name: rollout[name] for name in ("started_at", "step_at", "due_at", "seconds_left")},
        "actions": ", ".join(rollout["actions"]),
    }
    return tuple(fields), tuple(fields.values())
