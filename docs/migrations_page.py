"""The page of the changes of the schema, from the migrations themselves."""

from docs.type_pages import row

from homeostat.store.sql.migration import Phase, migrations

HEAD = """\
# Migrations

The changes of the database's schema. `homeostat migrate --phase expand` carries out those of the phase *expand*, which
programs of the version before may run beside; `homeostat migrate` those of the phase *contract* as well
([why](../adr/0015-expand-and-contract.md)). `homeostat doctor` shows how far a database is. What else a version wants
from operators is in the [upgrade notes](upgrade-notes.md).
""".splitlines()


def page() -> str:
    lines = [*HEAD, "", "| migration | phase | what it brings | beside an older program |", "|---|---|---|---|"]
    for migration in migrations():
        title, _, beside = migration.description.partition("\n")
        lines.append(row(f"`{migration.id}`", migration.phase.value, title, " ".join(beside.split())))
    if all(each.phase is Phase.EXPAND for each in migrations()):
        lines += ["", "None of them takes anything away yet."]
    return "\n".join([*lines, ""])
