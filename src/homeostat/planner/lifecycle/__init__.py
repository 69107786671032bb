"""Lifecycle of one resource: creation, change and deletion.

- `intents`: how a decision is stored before anything acts on it; `names`: names for the cloud
- `deletion`: delete, retain, or take a snapshot first
- `adoption`, `adoption_data`: take over existing things
- `external`: resources that stand for things not managed here
- `hooks`: places where a resource stops until a hook is cleared
"""
