"""HTTP, translation only: `intake` the single write path · `orchestration` the Orchestration API v1 · `auth` · `faults`."""
