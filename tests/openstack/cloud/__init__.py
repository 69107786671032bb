"""A small real OpenStack with a fake hypervisor: `python -m tests.openstack.cloud`. README.md says what it can do.

The services are the real ones, from a virtual environment of their own. Only the edges are fake: no guest, packet or
block is ever made (`inside/minios`).
"""
