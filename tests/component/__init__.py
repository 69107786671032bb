"""A whole service in one process, on SQLite in memory and on virtual time."""
