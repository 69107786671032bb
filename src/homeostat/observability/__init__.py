"""Metrics, traces and log context of the running service.

- `metrics`: the counters; `prometheus`: shows them
- `tracing`: OpenTelemetry spans
- `log_context`: what a log line is about; `outage_lines`: one log line a minute for each silent server
- `memory`: returns freed memory to the system
"""
