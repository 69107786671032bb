"""The page of who may ask for what, from the table that the test of it reads."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from docs.type_pages import row

TABLE: Mapping[str, Mapping[str, Any]] = yaml.safe_load((Path(__file__).parent / "access.yaml").read_text("utf-8"))
COLUMNS = ("admin", "member", "reader", "server")
MAY = {"readers": COLUMNS[:3], "members": COLUMNS[:2], "admins": COLUMNS[:1], "servers": COLUMNS}
HEAD = """\
# Who may ask for what

What each request gets, by the role of who asks and whose things it names, as long as no
[policy file](../howto/who-may-do-what.md) says otherwise. Every line is tried for every role, in both projects.

- In the own project, those who may get what the API describes (✓), all others 403: with no word of what is there.
- **At the address of another project** everybody gets 403 whatever it asks for, but admins, who get what they get at
  home.
- **Things of another project, named at an address of the own one**, are not there: the last column. Admins reach them.
- A server (role `heat_stack_user`) reaches the one resource that its user was made for; others give 403.
- Without a role in the project, everything is 403; without a valid token or password, 401.

Lists and filters have things of the own project only, but for admins: `GET /stacks`, `GET /stacks/detail`,
`GET /software_configs` and `GET /software_deployments` show them those of all projects. Signed addresses (`/v1/signal`,
`/v1/waitcondition`, `/v1/metadata`) open with their signature alone. The CloudFormation API has a rule for each of its
actions, see [Rules](policy.md).

| request | admin | member | reader | server | another project's |
|---|---|---|---|---|---|""".splitlines()


def page() -> str:
    return "\n".join([*HEAD, *(_line(request, entry) for request, entry in TABLE.items()), ""])


def _line(request: str, entry: Mapping[str, Any]) -> str:
    path, _, action = request.partition("#")
    shown = f"`{path}`" + (f" {action}" if action else "")
    marks = ["✓" if each in MAY[entry["who"]] else "403" for each in COLUMNS]
    return row(shown, *marks, str(entry.get("foreign", "")))
