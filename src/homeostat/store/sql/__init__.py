"""SQL beyond single queries, and the differences between databases.

- `backends`: the differences between the databases; `mysql_dialect`: the dialect for MariaDB and MySQL
- `bulk`, `bulk_statements`, `prepared`: statements for many rows, and statements that are built once
- `delete_found`: deletion by the values of other rows
- `lock_order`: the order in which rows are locked
- `group_commit`: one transaction for the requests of several threads
- `write_queue`: the queue of SQLite's writers
- `notices`, `polled_notices`: wake-ups of other processes
- `timeline`: the time of the service; `sizes`: sizes of cells
- `typed`: rows with a type
- `migration`: migrate the schema to this version
"""
