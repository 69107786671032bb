"""The database: SQL behind functions that work inside the caller's transaction.

- `schema`: the tables; `database`: connections and dialects; `events`: what happened
- `stacks`: stacks, their revisions, locks, snapshots, and what the APIs read of them
- `shards`: who owns a shard, its rows, and what was observed of them
- `builtin`: records of the resources that the service provides itself
- `operation`: workers, health, periodic work, purging
- `encryption`: sealed cells and their keys
- `sql`: what SQLite and PostgreSQL need apart
- `migrations`: the schema, version by version
"""
