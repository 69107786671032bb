"""When something that failed is tried again, and when it has failed for good.

- `backoff`: the delay between attempts
- `conditions`: which failures are tried again unasked
- `deadlines`: how long something may stay in progress
"""
