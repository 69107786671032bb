"""Alembic's entry point: runs the migrations on the connection of `Database.migrate`."""

from alembic import context

from homeostat.store.schema import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
