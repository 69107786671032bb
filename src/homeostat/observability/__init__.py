"""What the service says about itself while it runs.

- `metrics`: the counters; `prometheus`: shows them
- `tracing`: OpenTelemetry spans
- `log_context`: what a log line is about
- `memory`: returns freed memory to the system
"""
