"""Revisions of the schema, which Alembic runs (ADR 0015).

- `columns`: words in which the first revisions describe tables
- `env`: entry point of Alembic
- `versions`: the revisions
"""
