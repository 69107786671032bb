"""A cloud in memory, with latency, faults, late listing and quotas, on virtual or real time.

An adapter like any other, for tests, benchmarks and dry runs. Many workers may share a `SimulatedCloud`.
"""

from homeostat.clouds.simulated.behaviour import CloudBehaviour, Faults
from homeostat.clouds.simulated.cloud import SimulatedCloud

__all__ = ["CloudBehaviour", "Faults", "SimulatedCloud"]
