"""The memory of the service: SQL behind functions that work inside the caller's transaction.

`database` connections and dialects · `schema` the tables · `stacks` what users asked for · `shards` who owns what ·
`worlds` rows of one shard · `sightings` what observers see · `events` what happened · `views` reading for the API ·
`forsaken` creations given up · `health` how the service fares · `purge` removing what nobody needs any more.
"""
