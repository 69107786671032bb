"""The CloudFormation API, on the same port as the Orchestration API: `/v1/` with a parameter `Action`.

    routes -> parameters, signatures -> authentication -> stacks, resources (the actions) -> responses

It only translates: actions use the same services and rows as the Orchestration API. `errors` has the error codes,
`paging` the long lists. `signed_urls` are addresses that carry their own permission.
"""
