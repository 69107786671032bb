"""Diagnoses the service and suggests remedies: `homeostat doctor`, and the page of the service in the dashboard.

Read-only; works without a running service. Checks of a cloud are in `homeostat.cli`.
"""
