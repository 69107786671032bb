"""Users and access keys of CFN templates."""

from homeostat.builtin.addresses import access_key
from homeostat.builtin.kinds.base import RecordKind
from homeostat.builtin.sessions import RecordSession
from homeostat.clouds.port import Creation
from homeostat.resources.families.access import KEY, USER, User
from homeostat.store.builtin import records
from homeostat.store.builtin.records import Owner, Record


class Users(RecordKind):
    """Users of type `AWS::IAM::User`."""

    kind = USER
    needs_owner = False


class AccessKeys(RecordKind):
    """Access keys of users. Their link is the user, if the user is in the same stack."""

    kind = KEY
    needs_owner = False

    def make(self, session: RecordSession, intent: Creation, owner: Owner) -> list[Record]:
        handles = [resource.handle for resource in records.owners_in(session.tx, owner.stack_id, User.name)]
        users = {user.object["name"]: user.id for user in records.of_ids(session.tx, USER, handles).values()}
        link = users.get(intent.spec["user"], "")
        new = session.record(self.kind, intent.token, dict(intent.spec), link=link, secret=session.secret())
        new.object |= {"access_key": access_key(new.id), "secret_key": (new.secret or {})["key"]}
        return [new]
