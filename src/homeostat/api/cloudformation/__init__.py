"""The CloudFormation API, on the same port as the Orchestration API: `/v1/` with a parameter `Action`.

    routes -> parameters, signatures -> authentication -> stacks, resources (the actions) -> responses

The actions use the same services and rows as the Orchestration API. `errors` has the error codes, `paging` the long
lists. `signed_urls` are addresses whose signature authorizes the request.
"""
