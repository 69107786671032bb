"""Stacks that move between services.

- `adoption`: rows for things that exist already
- `export`: a stack as one document
"""
