"""Retries and final failures.

- `policy`: number of attempts, and delays between them
- `conditions`: failures that are retried without a request
- `causes`: shortages that may end by themselves
- `deadlines`: time limits of acts in progress
"""
