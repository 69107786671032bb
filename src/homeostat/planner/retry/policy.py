"""The retry policy of resources: creation, healing, and unanswered requests."""

from homeostat.model.retry import RetryPolicy

RETRY = RetryPolicy(first_s=1.0, longest_s=60.0, attempts_max=5, calm_s=60.0)
"""Only creations give up: after `attempts_max` the resource is FAILED and left to the user."""
