"""When something that failed is retried, and when it has failed for good.

- `policy`: delays between attempts, and their number
- `conditions`: failures that are retried without a request
- `deadlines`: how long something may stay in progress
"""
