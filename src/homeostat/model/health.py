"""Words of the health check."""

DRAINED = "DISABLED BY FILE"
"""Answer while the drain file is there, as operators know it of other OpenStack services."""
