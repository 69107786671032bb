"""Revisions of the schema, which Alembic runs (ADR 0015).

- `columns`: short forms for the tables in the first revisions
- `env`: entry point of Alembic
- `versions`: the revisions
"""
