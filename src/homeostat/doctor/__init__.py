"""Diagnoses the service and suggests remedies: `homeostat doctor`, and the page of the service in the dashboard.

It changes nothing and needs no running service. Checks of a cloud are in `homeostat.cli`.
"""
