"""Convergent, self-healing orchestration service."""
