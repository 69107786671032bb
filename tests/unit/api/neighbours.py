"""Two projects with the same things in them, and callers of every role, asked over ASGI: no sockets, no waiting."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select, update
from starlette.testclient import TestClient
from tests.component.running import Service

from homeostat.api.access.auth import with_implied
from homeostat.api.access.enforcer import Policy
from homeostat.api.app import create_app
from homeostat.model.caller import STACK_USER, Caller
from homeostat.model.errors import Rejected
from homeostat.resources.families.configs import CONFIG
from homeostat.resources.families.deployments import DEPLOYMENT
from homeostat.services.pipeline.request import StackRequest
from homeostat.store import schema
from homeostat.store.builtin import records, stack_users
from homeostat.store.builtin.records import Record
from homeostat.store.database import Transaction

OWN, OTHER = "own", "other"
TEMPLATE: Mapping[str, Any] = {
    "heat_template_version": "2021-04-16",
    "resources": {
        "handle": {"type": "OS::Heat::WaitConditionHandle"},
        "text": {"type": "OS::Heat::RandomString"},
        "group": {
            "type": "OS::Heat::ResourceGroup",
            "properties": {"count": 1, "resource_def": {"type": "OS::Heat::RandomString"}},
        },
        "scaled": {
            "type": "OS::Heat::AutoScalingGroup",
            "properties": {"min_size": 0, "max_size": 1, "resource": {"type": "OS::Heat::RandomString"}},
        },
        "policy": {
            "type": "OS::Heat::ScalingPolicy",
            "properties": {
                "auto_scaling_group_id": {"get_resource": "scaled"},
                "adjustment_type": "change_in_capacity",
                "scaling_adjustment": 1,
            },
        },
    },
    "outputs": {"text": {"value": {"get_attr": ["text", "value"]}}},
}


class Named:
    """An access mode for tests: the header `x-caller` is `ROLES[/USER]@PROJECT`, and nothing needs to be proved."""

    challenge = "Named"
    needs_peer = False

    def check_host(self, host: str) -> None:
        """Any address will do."""

    def check_way(self, headers: Mapping[str, str], peer: int | None) -> None:
        """Any way will do."""

    def known(self, headers: Mapping[str, str]) -> Caller:
        return self.caller(headers)

    def caller(self, headers: Mapping[str, str], method: str = "GET", path: str = "/") -> Caller:
        named, at, project = headers.get("x-caller", "").partition("@")
        roles, _, user = named.partition("/")
        if not at:
            raise Rejected("HTTPUnauthorized", "Say who you are.")
        held = frozenset({STACK_USER}) if roles == STACK_USER else with_implied(roles)
        return Caller(user or "ada", project, user or "ada", roles=held)


@dataclass(frozen=True, slots=True)
class Things:
    """Ids of what there is in a project. users — the project of its stack's users; config_id — of one that nothing
    refers to."""

    project: str
    users: str
    stack_id: str
    handle: str
    config_id: str
    deployment_id: str
    event_id: str
    snapshot_id: str


def _config(project: str, name: str) -> Record:
    object = {"name": name, "group": "script", "config": "", "inputs": [], "outputs": [], "options": {}}
    return Record(f"{project}-{name}", CONFIG, project, f"{project}-{name}", object)


class Neighbours:
    """policy — who may do what. `again` brings back what there was at first."""

    def __init__(self, policy: Policy | None = None) -> None:
        self.service = Service()
        app = create_app(
            self.service.db, self.service.stack_service, self.service.clock, access=Named(), policy=policy or Policy()
        )
        self.client = TestClient(app, raise_server_exceptions=False, follow_redirects=False)
        self.things = {project: self._prepare(project) for project in (OWN, OTHER)}

    def send(self, method: str, path: str, caller: str, project: str, body: Any = None) -> Any:
        """path — below the project. Gives the response."""
        return self.client.request(method, f"/v1/{project}{path}", headers={"x-caller": caller}, json=body)

    def create(self, project: str, resources: Mapping[str, Any], name: str = "more", **options: Any) -> str:
        """A stack of the project, made by a user who may do everything."""
        template = {**TEMPLATE, "resources": resources, "outputs": {}}
        stack_id = self.service.stack_service.create(project, None, name, StackRequest(template, **options))
        self.service.work()
        return stack_id

    def _prepare(self, project: str) -> Things:
        service, users = self.service, f"{project}-users"
        stack_id = service.stack_service.create(project, "ada", "web", StackRequest(TEMPLATE))
        service.work()
        config, deployed = (_config(project, each) for each in ("config", "deployed"))
        with service.db.write() as tx:
            handle = self._made_for(tx, stack_id, "handle", f"{project}-server")
            tx.execute(update(schema.stack).where(schema.stack.c.id == stack_id).values(user_project=users))
            made: dict[str, Any] = {
                "config_id": deployed.id,
                "server_id": handle,
                "action": "INIT",
                "status": "COMPLETE",
            }
            made |= {"name": "", "input_values": {}, "output_values": {}, "status_reason": ""}
            deployment = Record(f"{project}-deployment", DEPLOYMENT, project, f"{project}-d", made, handle)
            records.add(tx, [config, deployed, deployment])
        events = self.send("GET", f"/stacks/web/{stack_id}/resources/handle/events", f"reader@{project}", project)
        event_id = events.json()["events"][0]["id"]
        taken = self.send("POST", f"/stacks/web/{stack_id}/snapshots", f"member@{project}", project, {"name": "first"})
        service.work()
        return Things(project, users, stack_id, handle, config.id, deployment.id, event_id, taken.json()["id"])

    def _made_for(self, tx: Transaction, stack_id: str, name: str, user_id: str) -> str:
        """Let an identity service have a user for a resource. Gives the handle of the resource."""
        table = schema.resource
        chosen = select(table.c.token, table.c.handle).where(table.c.stack_id == stack_id, table.c.name == name)
        token, handle = tx.execute(chosen).one()
        user = Record(f"record-of-{user_id}", stack_users.STACK_USER, OWN, token, {}, user_id)
        records.add(tx, [user])
        return str(handle)
