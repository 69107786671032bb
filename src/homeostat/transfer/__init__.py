"""Stacks that move between services (ADR 0035).

- `adoption`: rows for things that exist already
- `export`: a stack as one document
"""
