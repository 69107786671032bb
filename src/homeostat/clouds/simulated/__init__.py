"""A cloud in memory: latency, faults, late listing, quota, on whatever time it is given.

A plug-in like any other, for tests, benchmarks and dry runs. One `SimulatedCloud` may be shared by many workers.
"""

from homeostat.clouds.simulated.cloud import Faults, SimulatedCloud, Weather
from homeostat.clouds.simulated.objects import KINDS

__all__ = ["KINDS", "Faults", "SimulatedCloud", "Weather"]
