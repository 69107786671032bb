"""Guests of servers, as far as stacks see them: agents read deployments from metadata, and report how these went."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from keystoneauth1.exceptions import NotFound
from keystoneauth1.identity.v3 import Password
from keystoneauth1.session import Session
from openstack.connection import Connection

DEPTH = 5
SERVER = "OS::Nova::Server"
DEPLOYMENTS = ("OS::Heat::SoftwareDeployment", "OS::Heat::SoftwareDeploymentGroup")
OUTCOME = {"deploy_stdout": "", "deploy_stderr": "", "deploy_status_code": 0}


@dataclass(slots=True)
class Guests:
    """Of the servers of one stack and those below it. user — sees the stack.

    Each deployment is reported by its own user, as the agents in a guest do; never twice.
    """

    user: Connection
    stack_id: str
    _done: set[str] = field(default_factory=set)

    def report(self) -> None:
        """Signal all deployments that were not yet, if any resource waits for one."""
        answer = self._orchestration.get(f"/stacks/{self.stack_id}/resources", params={"nested_depth": DEPTH})
        found = answer.json().get("resources", [])
        if not any(
            each["resource_type"] in DEPLOYMENTS and "_IN_PROGRESS" in each["resource_status"] for each in found
        ):
            return
        for deployment in self._deployments(_paths(found, SERVER)):
            if deployment["id"] not in self._done:
                inputs = {each["name"]: each["value"] for each in deployment["inputs"]}
                if inputs.get("deploy_signal_transport") == "HEAT_SIGNAL":
                    self._signal(inputs)
                    self._done.add(deployment["id"])

    def _deployments(self, servers: Sequence[str]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for server in servers:
            with contextlib.suppress(NotFound):  # it has gone meanwhile
                answer = self._orchestration.get(f"{server}/metadata")
                found += answer.json()["metadata"].get("deployments", [])
        return found

    @property
    def _orchestration(self) -> Any:
        return self.user.orchestration

    def _signal(self, inputs: dict[str, str]) -> None:
        login = Password(
            auth_url=inputs["deploy_auth_url"],
            user_id=inputs["deploy_user_id"],
            password=inputs["deploy_password"],
            project_id=inputs["deploy_project_id"],
        )
        path = f"/stacks/{inputs['deploy_stack_id']}/resources/{inputs['deploy_resource_name']}/signal"
        Session(auth=login).post(path, endpoint_filter={"service_type": "orchestration"}, json=OUTCOME)


def _paths(resources: Sequence[Mapping[str, Any]], type_name: str) -> list[str]:
    """Return the paths of those of a type."""
    stacks = [
        (each["resource_name"], next(link["href"] for link in each["links"] if link["rel"] == "stack"))
        for each in resources
        if each["resource_type"] == type_name
    ]
    return [f"/stacks/{'/'.join(href.split('/')[-2:])}/resources/{name}" for name, href in stacks]
