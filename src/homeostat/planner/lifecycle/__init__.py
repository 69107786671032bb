"""How one resource comes, changes and goes.

- `intents`: how a decision is stored before anything acts on it; `names`: names for the cloud
- `deletion`: delete, retain, or snapshot first
- `adoption`, `adoption_data`: take over what exists already
- `external`: resources that stand for things of others
- `hooks`: where a resource stops until it is told to go on
"""
