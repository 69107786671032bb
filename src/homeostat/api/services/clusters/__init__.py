"""What the Clustering API does: each request becomes rows, and the revision of a stack, in one transaction.

- `specs`: profiles and policies
- `requester`: who asks, and in which project
"""
