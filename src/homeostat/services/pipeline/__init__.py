"""From a request to a revision, in stages. No stage calls an earlier one; only `stages` calls them.

    stages      calls the others in this order
    request     StackRequest: what a user sends
    merging     -> Desired: with what is stored, the operator's environment, and templates fetched by URL (`fetching`)
    (compiling) -> Compiled: `desired.compiling`
    checking    -> Requirements (`requirements`): every resource of the tree (`expansion`), and its needs from outside
    prerequisites, regions: these needs, looked up in the clouds; the result of all is Checked
    storing     -> the revision's number

Stages that come later may import the values of earlier ones.
"""
