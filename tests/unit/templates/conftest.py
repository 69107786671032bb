"""Property-based tests walk the same examples each time, however busy the machine is.

With HOMEOSTAT_EXAMPLES they walk so many others (`make fuzz`); a failing one is printed so that it can be played again.
"""

import os

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile(
    "fuzz", max_examples=int(os.environ.get("HOMEOSTAT_EXAMPLES") or 100), deadline=None, print_blob=True
)
settings.load_profile("fuzz" if os.environ.get("HOMEOSTAT_EXAMPLES") else "repeatable")
