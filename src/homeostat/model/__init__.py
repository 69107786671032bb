"""Values that all packages share. This package imports none of the others, and does no I/O.

- `errors`: errors by who must act
- `status`: words for states, and the legal transitions
- `desired`: the desired graph
- `observed`: observations and verdicts
- `world`: everything that deciding needs
- `plan`: decisions
- `intent`, `hooks`, `marks`: what a row stores of an act, of its hooks, and besides
- `rollout`: rollouts of metadata
- `retry`: retry policies
- `waiting`: reasons not to act yet
- `limits`: what requests may add up to
"""
