"""Metrics, traces and log context of the running service.

- `metrics`: counters; `prometheus`: their exposition
- `tracing`: OpenTelemetry spans
- `log_context`: context of log lines; `outage_lines`: a log line a minute for each silent server
- `memory`: returns freed memory to the system
"""
