"""From a request to a revision, in stages. No stage calls an earlier one; only `stages` calls them.

    stages      calls the others in this order
    request     StackRequest: the user's input
    merging     -> Content: merged with the stored revision, the operator's environment, and templates fetched by URL
                (`fetching`)
    (compiling) -> Compiled: `desired.compiling`
    checking    -> Requirements (`requirements`): every resource of the tree (`expansion`), and its external needs
    prerequisites, regions: look up these needs in the clouds -> Checked (`checked`)
    storing     -> the revision's number

Later stages may import the values of earlier stages.
"""
