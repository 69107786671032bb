"""The stages of a pass, in their order. The reconciler calls them one after the other; none calls another back.

| stage | function | result |
|---|---|---|
| load | `loading.load_world` | `Loaded`: the world of the shard |
| decide | `deciding.decide` | `Decided`: steps to take now |
| store | `storing.store` | `Stored`: the intents are in the database, with what was recorded before |
| act | `acting.act` | `Acted`: each step with its answer |
| record | `recording.record` | changed rows and a moved frontier, in the `Pass` until the next transaction |
| look again | `looking.look_again` | what was changed by others is seen before that is stored |
| release | `releasing.release` | the shard is given back |

They share one `passing.Pass`.
"""
