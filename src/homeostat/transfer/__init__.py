"""Export and adoption of stacks, to move them between services (ADR 0035).

- `adoption`: rows for existing things
- `export`: a stack as a document
"""
