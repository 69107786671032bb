"""The HTTP APIs: translate requests into calls, and results into responses.

- `http`: the application, its middleware, the request context and error responses
- `access`: authentication, authorization, signed URLs
- `services`: what requests do, independent of the wire format; `services.stacks` is the single write path
- `orchestration`: the Orchestration API v1
- `cloudformation`: the CloudFormation API
"""
