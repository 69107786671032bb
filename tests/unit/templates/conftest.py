"""Property-based tests walk the same examples each time, however busy the machine is."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
