"""TaskFlow's job boards and conductor, for shards.

- `board`: the job board in the database; `redis_board`: claims in Redis
- `conductor`: claims jobs and runs a pass for each
"""
