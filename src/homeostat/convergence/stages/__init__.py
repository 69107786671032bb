"""The stages of a pass, in their order. The reconciler calls one after the other; no stage calls an earlier one.

| stage | function | result |
|---|---|---|
| load | `loading.load_world` | `Loaded`: the world of the shard |
| decide | `deciding.decide` | `Decided`: steps to take now |
| store | `storing.store` | `Stored`: the intents are in the database, with the outcomes recorded before |
| act | `acting.act` | `Acted`: each step with its answer |
| record | `recording.record` | changed rows and a moved frontier, in the `Pass` until the next transaction |
| look again | `looking.look_again` | side effects on other things are observed before their cause is stored |
| release | `releasing.release` | the shard is given back |

All stages share one `passing.Pass`. `redactor`: redaction of secrets in stored texts.
"""
