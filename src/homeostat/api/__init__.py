"""HTTP, translation only.

`intake` the single write path · `graphs` what stored revisions mean · `orchestration` the Orchestration API v1 ·
`auth` who may ask · `middleware`, `asking`, `answers`, `faults` around every request · `app`, `server` the whole.
"""
