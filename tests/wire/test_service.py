"""How the service is, asked for by admins of a project and of the whole cloud: who sees what."""

import time
from pathlib import Path

import httpx
from sqlalchemy import update

from homeostat.api.access.auth import with_implied
from homeostat.api.access.enforcer import Policy
from homeostat.model.caller import Caller
from homeostat.store import schema
from homeostat.store.operation import workers
from homeostat.store.operation.workers import Worker
from tests.unit.api.neighbours import Named
from tests.wire.running import database, serving
from tests.wire.templates import HELLO


def test_what_names_stacks_of_all_projects_is_for_admins_of_the_whole_cloud(tmp_path: Path) -> None:
    with database(tmp_path) as db, serving(db, Named()) as url, httpx.Client(base_url=f"{url}/v1") as http:
        made = http.post(
            "/other/stacks", json={"stack_name": "theirs", "template": HELLO}, headers={"x-caller": "member@other"}
        )
        there, now = made.json()["stack"]["id"], time.time()
        worker = Worker("w1", "host", 7, "1", "sql", now, now)
        with db.write() as tx:
            workers.report(tx, worker)
            tx.execute(update(schema.shard).values(reason="KeyError('x')", owner=worker.name, lease_until=now + 3600.0))
            tx.execute(tx.insert(schema.request_turn).values(service="compute", free_at=now + 3600.0))
        admin = {"x-caller": "admin@own"}
        found = http.get("/own/service/doctor", headers=admin).json()["examination"]
        assert found["set_aside"] == [
            {"stack_name": "theirs", "stack_id": there, "project": "other", "shard": 0, "reason": "KeyError('x')"}
        ]
        bugs = next(each for each in found["checks"] if each["name"] == "bugs")
        assert (found["healthy"], bugs["level"], "theirs" in bugs["found"]) == (False, "fail", True)
        answer = http.get("/own/service", headers=admin)
        shown = answer.json()["service"]
        assert [(each["name"], each["alive"], each["shards"]) for each in shown["workers"]] == [("w1", True, 1)]
        assert shown["shards"] == {"owned": 1, "waiting": 0, "waiting_seconds": 0.0, "set_aside": 1}
        assert [(each["service"], each["waiting_seconds"] > 3000) for each in shown["requests"]] == [("compute", True)]
        assert not [each for each in (there, "theirs", "other", "KeyError") if each in answer.text]


def test_an_admin_of_a_project_sees_no_names_of_others() -> None:
    policy = Policy()
    asked_by = policy.known(Caller("root", "own", roles=with_implied("admin"), of_admin_project=False))
    assert policy.allows("service:show", asked_by, "own")
    assert not policy.allows("service:show", asked_by, "other")
    assert not policy.allows("service:examine", asked_by, "own")
