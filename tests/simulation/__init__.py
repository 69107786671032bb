"""The simulation ring: a seed replays a whole world — users, workers, a faulty cloud, crashes — on virtual time.

A ring is a `World` (`world`) with a list of parts (`parts`); `playing` plays its seeds, `regressions` are those that
failed once.

- The world: `actors`, its processes; `watched`, its database and clouds; `watching`, what is judged after each commit
  (`rows`); `invariants`, what must hold at rest.
- Trouble of all sorts (`trouble`): `users` (`templates`), `disturbances`, `transfers`, `hooks`, `keeping`, `losses`,
  `governing`, `unkept_values`, `doubting`, `caretaking`; `wavering`, after it.
- Health policies (`checking`): `health_faults`, `health_evidence`, `health_invariants`, `health_keeping`,
  `health_policies`, `health_rows`, `places`, `taking`, `watched_groups`.
- Rollouts (`rolling`): `rolling_templates`, `rollout_invariants`, `definition_invariants`. Groups: `groups_away`,
  `listing`. Servers that hold things: `holding`.
"""
