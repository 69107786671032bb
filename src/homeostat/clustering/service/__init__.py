"""Services of the Clustering API: each request becomes rows, and the revision of a stack, in one transaction.

- `requester`: the caller and the project; `quotas`: limits on clusters and metadata
- `specs`: profiles and policies
- `clusters`, `nodes`: clusters and nodes; `change_rows`: rows of nodes and waiting actions that a change writes
- `changes`: changes of a cluster; `sizing`: changes of its size; `membership`: nodes that join or leave
- `membership_moves`: nodes that move into a cluster or out of it
- `stack_requests`: the revisions of the stacks of clusters and nodes
- `bindings`, `attached_policies`: the policies attached to clusters; `policy_lookups`: server groups, regions and URLs
  in policies
- `operations`: operations, checks and recoveries of nodes; `requests`: the requests in the rows of nodes
- `adopting`, `adopted_stacks`: existing servers and stacks as nodes
- `receivers`, `message_receivers`: webhooks and message queues that trigger actions
- `hook_waits`: lifecycle hooks; `cancelling`: cancellation of actions
- `services`: all services together
"""
