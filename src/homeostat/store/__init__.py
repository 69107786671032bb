"""The memory of the service: SQL behind functions that work inside the caller's transaction.

`database` connections and dialects · `schema` the tables · `stacks` what users asked for · `shards` who owns what ·
`looking` when things are looked at · `standing` how nested stacks stand · `prepared` statements that are built once ·
`worlds` rows of one shard · `sightings` what observers see · `events` what happened · `views` reading for the API ·
`progress` how far stacks are · `chores` what is due beside the passes · `forsaken` creations given up ·
`workers` who runs · `health` how the service fares · `bulk` many rows in one statement · `queueing` the queue of
SQLite's writers · `migrating` the schema's versions · `purge` removing what nobody needs any more.
"""
