"""What SQLite and PostgreSQL need apart.

- `bulk`, `prepared`: statements for many rows, and statements that are built once
- `lock_order`: the one order in which rows are locked
- `write_queue`: the queue of SQLite's writers
- `notices`: wakes other processes
- `migration`: brings the schema to this version
"""
