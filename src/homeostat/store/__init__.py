"""The database: functions around SQL, which work inside the caller's transaction.

- `schema`: the tables; `database`: connections, transactions and dialects; `events`: the log of state changes
- `stacks`: stacks, their revisions, locks and snapshots, and the queries of the APIs
- `shards`: ownership of shards, their rows, and the observed state of these rows
- `builtin`: records of the resources that the service provides itself
- `operation`: workers, health, periodic work, purging; `requesters`: the senders of requests
- `encryption`: encrypted cells and their keys
- `sql`: the differences between SQLite, PostgreSQL, and MariaDB and MySQL
- `migrations`: the schema, version by version
"""
