"""The CloudFormation API, on the same port as the Orchestration API: `/v1/` with a parameter `Action`.

    routes -> parameters, signatures -> admission (who asks) -> stacks, resources (the actions) -> answers

It is a translation: what happens to stacks is asked of the same intake, and read from the same rows, as for the
Orchestration API. `errors` are its error codes, `paging` its long lists.
"""
