"""Questions to the planner that change nothing.

- `explain`: why a resource does not move
- `estimate`: how long it will take
- `preview`: what an update would do
"""
