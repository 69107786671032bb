"""The service acts for users who have logged out, with their trusts: a real Keystone, a real service."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from homeostat.cli.doctor import examine
from homeostat.clouds.identity.errors import Denied
from homeostat.clouds.identity.trusts import Trusts
from homeostat.doctor.checks import Level
from homeostat.identity import trusts
from homeostat.identity.trusts import Requester
from homeostat.store import schema
from homeostat.store.builtin import stored_trusts
from homeostat.store.builtin.stored_trusts import GONE, GOOD, REQUESTED, StoredTrust
from homeostat.store.database import Database
from tests.identity.conftest import Entrusted, Person
from tests.keystone_server import Admin, KeystoneServer
from tests.waiting import until
from tests.wire.running import settled

TEXT = """
heat_template_version: wallaby
parameters: {word: {type: string, default: one}}
resources: {a: {type: OS::Heat::TestResource, properties: {value: {get_param: word}}}}
outputs: {word: {value: {get_attr: [a, output]}}}
"""


def remote(word: str = "one") -> dict[str, Any]:
    """A stack in this service's own region, made by a stack."""
    properties = {"template": TEXT, "parameters": {"word": word}}
    reader = {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["r", "outputs", "word"]}}}
    return {
        "heat_template_version": "wallaby",
        "resources": {"r": {"type": "OS::Heat::Stack", "properties": properties}, "reads": reader},
        "outputs": {"word": {"value": {"get_attr": ["reads", "value"]}}},
    }


def create(http: httpx.Client, template: Any = TEXT, name: str = "s") -> str:
    answer = http.post("stacks", json={"stack_name": name, "template": template})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["stack"]["id"])


def rows(db: Database) -> list[StoredTrust]:
    with db.read() as tx:
        found = tx.execute(select(schema.trust).order_by(schema.trust.c.created_at))
        names = StoredTrust.__dataclass_fields__
        return [StoredTrust(**{name: getattr(row, name) for name in names}) for row in found]


def trusts_of(service: Entrusted, user_id: str) -> list[str]:
    """Ids of the trusts of this user in the service, as Keystone has them."""
    trustee = service.keystone.user_id(service.keystone.trustee)
    found = service.keystone.request(
        service.keystone.trustee, "GET", "OS-TRUST/trusts", params={"trustee_user_id": trustee}
    )
    return [each["id"] for each in found["trusts"] if each["trustor_user_id"] == user_id]


def gone(http: httpx.Client, stack_id: str) -> Callable[[], bool]:
    return lambda: http.get(f"stacks/s/{stack_id}").json()["stack"]["stack_status"] == "DELETE_COMPLETE"


def test_a_stack_comes_with_a_trust_that_goes_with_it(service: Entrusted, person: Person) -> None:
    with service.client(person) as http:
        stack_id = create(http)
        (trust,) = trusts_of(service, person.id)
        (row,) = rows(service.db)
        assert (row.stack_id, row.trust_id, row.state, row.user_id) == (stack_id, trust, GOOD, person.id)
        assert service.trusts.token(trust)
        http.delete(f"stacks/s/{stack_id}")
        until(gone(http, stack_id), "the stack to be deleted")
    until(lambda: not rows(service.db), "the trust to be done with")
    assert trusts_of(service, person.id) == []


def test_a_service_that_gets_the_token_of_a_trust_may_act_later_and_cannot_pass_that_on(
    service: Entrusted, person: Person
) -> None:
    """As Aodh does for `trust+https://…`, whose user is here the one of the service itself."""
    end = "2099-01-01T00:00:00.000000Z"
    asked: dict[str, Any] = {
        "trustor_user_id": person.id,
        "trustee_user_id": service.keystone.user_id(service.keystone.trustee),
    }
    asked |= {"project_id": person.project_id, "impersonation": True, "roles": [{"name": "member"}], "expires_at": end}
    with service.client(person) as http:
        create(http)
        (trust,) = trusts_of(service, person.id)
    made = service.keystone.request_as(service.trusts.token(trust), "POST", "OS-TRUST/trusts", json={"trust": asked})[
        "trust"
    ]
    assert made["trustor_user_id"] == person.id
    with pytest.raises(Denied):
        service.keystone.request_as(
            service.trusts.token(made["id"]), "POST", "OS-TRUST/trusts", json={"trust": {**asked, "expires_at": None}}
        )


def test_a_stack_makes_stacks_in_the_own_region_without_a_login(
    service: Entrusted, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Trusts, "is_ours", lambda *_: False)  # the service itself knows
    with service.client(person) as http:
        stack_id = create(http, remote())
        stack = settled(http, stack_id, status="CREATE_COMPLETE")
        assert stack["outputs"][0]["output_value"] == "one"
        inner = [each for each in http.get("stacks").json()["stacks"] if each["id"] != stack_id]
        assert [each["stack_owner"] for each in inner] == [person.name]
        assert len(trusts_of(service, person.id)) == 1  # the inner one goes by the same
        http.put(f"stacks/s/{stack_id}", json={"template": remote("two")})
        stack = settled(http, stack_id, status="UPDATE_COMPLETE")
        assert stack["outputs"][0]["output_value"] == "two"
        http.delete(f"stacks/s/{stack_id}")
        until(gone(http, stack_id), "the stack to be deleted")
        until(lambda: not rows(service.db), "the trust to be done with")
        assert http.get("stacks").json() == {"stacks": []}
    assert trusts_of(service, person.id) == []


@pytest.fixture
def colleague(admin: Admin, person: Person) -> Person:
    """Another user with a role in the same project."""
    name = f"{person.name}-colleague"
    return Person(name, admin.user(name, person.project_id, "member"), person.project, person.project_id, person.url)


def test_an_update_by_another_user_is_on_their_behalf(service: Entrusted, person: Person, colleague: Person) -> None:
    with service.client(person) as http, service.client(colleague) as other:
        stack_id = create(http)
        assert other.put(f"stacks/s/{stack_id}", json={"template": TEXT}).status_code == 202
        until(lambda: trusts_of(service, person.id) == [], "the first trust to be given back")
        (trust,) = trusts_of(service, colleague.id)
        assert [(row.trust_id, row.state) for row in rows(service.db)] == [(trust, GOOD)]
        assert other.put(f"stacks/s/{stack_id}", json={"template": TEXT}).status_code == 202
        assert trusts_of(service, colleague.id) == [trust]


def test_what_another_user_asks_of_a_stack_is_on_their_behalf(
    service: Entrusted, person: Person, colleague: Person
) -> None:
    with service.client(person) as http, service.client(colleague) as other:
        stack_id = create(http)
        settled(http, stack_id, status="CREATE_COMPLETE")
        snapshot = http.post(f"stacks/s/{stack_id}/snapshots", json={}).json()["id"]
        settled(http, stack_id, status="SNAPSHOT_COMPLETE")
        for requester, path, body, status in (
            (other, "actions", {"suspend": None}, "SUSPEND_COMPLETE"),
            (http, "actions", {"resume": None}, "RESUME_COMPLETE"),
            (other, f"snapshots/{snapshot}/restore", None, "RESTORE_COMPLETE"),
        ):
            assert requester.post(f"stacks/s/{stack_id}/{path}", json=body).is_success
            settled(http, stack_id, status=status)
            mine, others = (person, colleague) if requester is http else (colleague, person)
            assert len(trusts_of(service, mine.id)) == 1
            until(lambda id=others.id: trusts_of(service, id) == [], "the other's trust to be given back")  # type: ignore[misc]


def test_a_trust_whose_user_has_no_role_any_more_is_reported_and_mended_by_an_update(
    service: Entrusted, person: Person, colleague: Person, admin: Admin
) -> None:
    with service.client(person) as http, service.client(colleague) as other:
        stack_id = create(http, remote())
        settled(http, stack_id, status="CREATE_COMPLETE")
        admin.withdraw(person.id, person.project_id, "member")
        until(lambda: {row.state for row in rows(service.db)} == {GONE}, "the trust to be missed")
        found = [each for each in examine(service.db, None) if each.name == "trusts"]
        assert [each.level for each in found] == [Level.WARN]
        assert person.name in found[0].found
        explained = other.get(f"stacks/s/{stack_id}/explain", follow_redirects=True).text
        assert "no valid trust" in explained
        assert other.put(f"stacks/s/{stack_id}", json={"template": remote("two")}).status_code == 202
        stack = settled(other, stack_id, status="UPDATE_COMPLETE")
        assert stack["outputs"][0]["output_value"] == "two"
        assert next(each for each in examine(service.db, None) if each.name == "trusts").level is Level.OK


def test_the_user_is_deleted_and_another_one_deletes_the_stack(
    service: Entrusted, person: Person, colleague: Person, admin: Admin
) -> None:
    with service.client(person) as http, service.client(colleague) as other:
        stack_id = create(http, remote())
        settled(http, stack_id, status="CREATE_COMPLETE")
        admin.send("DELETE", f"users/{person.id}")
        assert other.delete(f"stacks/s/{stack_id}").status_code == 204
        until(gone(other, stack_id), "the stack to be deleted")
    until(lambda: not rows(service.db), "all trusts to be done with")


def unfinished_trust(service: Entrusted, person: Person, stack_id: str = "nowhere") -> StoredTrust:
    """What is left of a service that has died while it asked."""
    row = StoredTrust("d", stack_id, person.project_id, person.id, REQUESTED, object={"end": service.trusts.end_of(7)})
    row.due_at = 0.0
    with service.db.write() as tx:
        stored_trusts.add(tx, row)
    return row


def test_what_was_asked_for_by_one_who_died_is_given_back(service: Entrusted, person: Person) -> None:
    end = service.trusts.end_of(7)
    made = service.trusts.make(person.id, person.project_id, ["member"], person.token(), end)
    assert service.trusts.make(person.id, person.project_id, ["member"], person.token(), end) == made
    unfinished_trust(service, person)
    until(lambda: not rows(service.db), "the row to be done with")
    assert trusts_of(service, person.id) == []


def test_a_stack_that_is_refused_leaves_no_trust(service: Entrusted, person: Person) -> None:
    with service.client(person) as http:
        create(http)
        assert http.post("stacks", json={"stack_name": "s", "template": TEXT}).status_code == 409
        until(lambda: len(rows(service.db)) == 1, "the second trust to be given back")
    assert len(trusts_of(service, person.id)) == 1


def test_while_keystone_is_down_nothing_is_begun_and_nothing_is_lost(
    service: Entrusted, person: Person, keystone: KeystoneServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trusts, "AGAIN_S", 0.5)
    with service.client(person) as http:
        stack_id = create(http, remote())
        settled(http, stack_id, status="CREATE_COMPLETE")
        requester = Requester(person.id, person.name, person.project_id, frozenset({"member"}), person.token())
        keystone.stop()
        try:
            with (
                pytest.raises(Exception, match="Keystone does not answer"),
                service.stack_trusts.entrusted("n", requester),
            ):
                pass
            assert http.get("stacks").status_code == 503
        finally:
            keystone.start()
        until(lambda: len(rows(service.db)) == 2, "what was in vain to be done with")
        assert {row.state for row in rows(service.db)} == {GOOD}
        assert http.get(f"stacks/s/{stack_id}").json()["stack"]["stack_status"] == "CREATE_COMPLETE"


def test_a_user_who_cannot_be_acted_for_is_refused(service: Entrusted, person: Person) -> None:
    requester = Requester(person.id, person.name, person.project_id, frozenset({"admin"}), person.token())
    with pytest.raises(Exception, match="could not act for"), service.stack_trusts.entrusted("n", requester):
        pass
    with pytest.raises(Denied, match="no valid trust"):
        service.stack_trusts.token(person.project_id)
    until(lambda: not rows(service.db), "the row to be done with")
