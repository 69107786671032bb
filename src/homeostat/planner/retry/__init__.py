"""Retries of failed acts.

- `policy`: number of attempts, and delays between them
- `causes`: shortages that may end by themselves
"""
