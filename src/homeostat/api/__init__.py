"""HTTP, translation only.

`intake` the single write path of desired states, `asks` what else users ask · `graphs` what stored revisions mean ·
`orchestration` the Orchestration API v1 · `auth` who may ask · `middleware`, `asking`, `answers`, `faults` around
every request · `app`, `server` the whole.
"""
