"""The database: functions around SQL, which work inside the caller's transaction `tx`.

`now` is the agreed time (`Transaction.now`), which a caller reads once for all that it stores. A function with several
statements that must agree takes a transaction of `Database.read` or `Database.write`, where they see one snapshot or
hold locks. An argument `stack` or `row` of a changing function is a stack's row, locked in the same transaction.

- `schema`: the tables; `database`: connections, transactions and dialects; `events`: the log of state changes
- `stacks`: stacks, their revisions, locks and snapshots, and the queries of the APIs
- `shards`: ownership of shards, their rows, and the observed state of these rows
- `builtin`: records of the resources that the service provides itself
- `operation`: workers, health, periodic work, purging; `requesters`: the senders of requests
- `encryption`: encrypted cells and their keys
- `sql`: the differences between SQLite, PostgreSQL, and MariaDB and MySQL
- `migrations`: the schema, version by version
"""
