"""Documents of stacks, and things that are there already."""

import json
from typing import Any, cast

from homeostat.clouds.port import Creation
from homeostat.model.observed import Observation
from tests.component.running import Service, template

VALUE = "OS::Heat::Value"


CHILD = "{heat_template_version: 2018-08-31, resources: {inner: {type: OS::Cinder::Volume, properties: {size: 1}}}}"


def foreign(service: Service, kind: str, **spec: Any) -> str:
    """A thing that another service has made."""
    (made,) = service.cloud.create(kind, [Creation(f"theirs-{len(service.cloud.things())}", spec)])
    assert isinstance(made, Observation)
    return made.handle


def entry(name: str, type_name: str, id: str | None, **more: Any) -> dict[str, Any]:
    """As upstream writes it (rest-api.md section 2.3)."""
    state = {"action": "CREATE", "status": "COMPLETE", "metadata": {}, "resource_data": {}}
    return {"name": name, "resource_id": id, "type": type_name, **state, **more}


def document(resources: dict[str, Any], entries: dict[str, Any], **more: Any) -> dict[str, Any]:
    environment: dict[str, Any] = {"parameters": {}, "parameter_defaults": {}, "resource_registry": {}}
    environment["encrypted_param_names"] = []
    return {
        "name": "old",
        "id": "11111111-2222-3333-4444-555555555555",
        "action": "CREATE",
        "status": "COMPLETE",
        "project_id": "p",
        "stack_user_project_id": "users",
        "tags": None,
        "environment": {**environment, **more.pop("environment", {})},
        "files": more.pop("files", {}),
        "template": template(resources),
        "resources": entries,
        **more,
    }


def moved(service: Service, stack_id: str) -> dict[str, Any]:
    """The document of a stack that is abandoned."""
    abandoned = service.moving.abandon(stack_id)
    service.rest()
    return cast(dict[str, Any], json.loads(json.dumps(abandoned)))
