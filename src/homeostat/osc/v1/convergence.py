"""`openstack stack converge`, `openstack stack observe`, and the same for resources (CV9)."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from osc_lib.command.command import Lister, ShowOne
from osc_lib.exceptions import CommandError

from homeostat.osc.service import Service, Wire, resource_of, service_of, until
from homeostat.osc.v1.arguments import add_resource, add_stack, add_timeout, add_wait, teach

STACK = ("id", "stack_name", "stack_status", "stack_status_reason")
RESOURCE = ("resource_name", "resource_type", "physical_resource_id", "resource_status", "resource_status_reason")
SEEN = ("Resource", "Status", "Presence", "Looked At", "Differs In")

Row = tuple[Any, ...]


class Converge(ShowOne):
    """Observe a stack and bring it to its desired state; retry failed resources

    Works also if convergence is switched off, and replaces resources that are marked unhealthy.
    """

    def get_parser(self, prog_name: str) -> ArgumentParser:
        parser = super().get_parser(prog_name)
        add_stack(parser)
        add_wait(parser, "the stack is at rest")
        return teach(parser, "openstack stack converge --wait web")

    def take_action(self, parsed_args: Namespace) -> tuple[Any, Any]:
        service = service_of(self)
        place = service.stack(parsed_args.stack)
        service.act(place, "converge")
        return outcome(service, place, parsed_args)


class ConvergeResource(ShowOne):
    """Observe a resource and bring it to its desired state

    Works also if convergence is switched off, and replaces a resource that is marked unhealthy.
    """

    def get_parser(self, prog_name: str) -> ArgumentParser:
        parser = super().get_parser(prog_name)
        add_stack(parser)
        add_resource(parser)
        add_wait(parser, "the resource is at rest")
        return teach(parser, "openstack stack resource converge --wait web server")

    def take_action(self, parsed_args: Namespace) -> tuple[Any, Any]:
        service = service_of(self)
        place = resource_of(service.stack(parsed_args.stack), parsed_args.resource)
        service.act(place, "converge")
        if parsed_args.wait:
            until(
                lambda: _resource_ended(service, place), parsed_args.timeout, f"{parsed_args.resource} is not at rest"
            )
        resource: Wire = service.get(place)["resource"]
        return RESOURCE, tuple(resource[key] for key in RESOURCE)


class Observe(Lister):
    """Observe a stack and its nested stacks now, and show differences from the desired state"""

    def get_parser(self, prog_name: str) -> ArgumentParser:
        parser = super().get_parser(prog_name)
        add_stack(parser)
        add_timeout(parser)
        return teach(parser, "openstack stack observe web", "openstack stack observe web -f json")

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterator[Row]]:
        service = service_of(self)
        stack = service.stack(parsed_args.stack)
        _look(service, stack, f"{stack}/convergence", parsed_args.timeout)
        return SEEN, map(_seen, service.get(f"{stack}/resources")["resources"])


class ObserveResource(Lister):
    """Observe a resource now, and show how it differs from its desired state"""

    def get_parser(self, prog_name: str) -> ArgumentParser:
        parser = super().get_parser(prog_name)
        add_stack(parser)
        add_resource(parser)
        add_timeout(parser)
        return teach(parser, "openstack stack resource observe web server")

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterator[Row]]:
        service = service_of(self)
        stack = service.stack(parsed_args.stack)
        place = resource_of(stack, parsed_args.resource)
        _look(
            service, place, f"{stack}/convergence?resource={quote(parsed_args.resource, safe='')}", parsed_args.timeout
        )
        return SEEN, map(_seen, [service.get(place)["resource"]])


def _look(service: Service, place: str, looks: str, timeout_s: float) -> None:
    """Request an observation, and wait for it.

    Args:
        looks: Path that reports the last observation.

    Raises:
        CommandError: The observation fails, or takes too long.
    """
    requested_at = service.act(place, "observe")["observe"]["asked_at"]
    until(lambda: _looked(service, looks, requested_at), timeout_s, "no observation was made")


def _seen(resource: Wire) -> Row:
    seen = resource["observed"] or {}
    differs = ", ".join(difference["property"] for difference in seen.get("drift", ())) or seen.get("left_alone", "")
    looked_at = seen.get("looked_at", "")
    return resource["resource_name"], resource["resource_status"], seen.get("presence", ""), looked_at, differs


def _looked(service: Service, looks: str, requested_at: str) -> Wire | None:
    state: Wire = service.get(looks)["convergence"]
    if (state["looked_at"] or "") >= requested_at:
        return state
    if state["blind"]:
        raise CommandError(f"it cannot be looked at now: {state['blind']}")
    return None


def outcome(service: Service, place: str, parsed_args: Namespace) -> tuple[Any, Any]:
    """Return the columns of a stack, with --wait once it is at rest. Raise CommandError if it has failed by then."""
    if parsed_args.wait:
        until(lambda: _stack_ended(service, place), parsed_args.timeout, f"{parsed_args.stack} is in progress")
    stack = _stack_at(service, place)
    if parsed_args.wait and stack["stack_status"].endswith("FAILED"):
        raise CommandError(f"{stack['stack_name']} is {stack['stack_status']}: {stack['stack_status_reason']}")
    return STACK, tuple(stack[key] for key in STACK)


def _stack_at(service: Service, place: str) -> Wire:
    return dict(service.get(f"{place}?resolve_outputs=False")["stack"])


def _stack_ended(service: Service, place: str) -> Wire | None:
    stack = _stack_at(service, place)
    return None if stack["stack_status"].endswith("IN_PROGRESS") else stack


def _resource_ended(service: Service, place: str) -> Wire | None:
    resource: Wire = service.get(place)["resource"]
    busy = resource["resource_status"].endswith("IN_PROGRESS") or "asked_at" in resource
    return None if busy else resource
