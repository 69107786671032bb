"""When something that failed is retried, and when it has failed for good.

- `policy`: delays between attempts, and their number
- `conditions`: failures that are retried without a request
- `causes`: what is lacking, and may come by itself
- `deadlines`: how long something may stay in progress
"""
