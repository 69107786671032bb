"""Benchmarks: each figure is a ratio, a rate or a growth, printed as one JSON object a line."""
