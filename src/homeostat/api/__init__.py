"""The HTTP APIs: translate requests into calls, and results into responses.

From the outside in:

- `server`, `app`: the process, and the application with its routes
- `middleware`, `errors`: what happens around every route; responses to failed requests
- `route_table`: from the path to the handler of a route, and to its arguments
- `hidden_addresses`: redaction for readers; `answer_limit`: the size limit of answers
- `dashboard`: the files of the dashboard
- `cloudformation`: the CloudFormation API
- `orchestration`: the Orchestration API v1
- `context`: what a route handler works with
- `access`: authentication and authorization; `policy_text`: the rules as text
- `http`: connections, bodies, limits, responses
"""
