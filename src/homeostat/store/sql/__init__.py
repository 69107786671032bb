"""SQL beyond single queries, and the differences between SQLite and PostgreSQL.

- `bulk`, `prepared`: statements for many rows, and statements that are built once
- `lock_order`: the one order in which rows are locked
- `group_commit`: requests of several threads that one transaction answers
- `write_queue`: the queue of SQLite's writers
- `notices`: wake-ups of other processes
- `migration`: bringing the schema to this version
"""
