"""What the Clustering API does: each request becomes rows, and the revision of a stack, in one transaction.

- `requester`: who asks, and in which project
- `specs`: profiles and policies
- `clusters`, `nodes`: what there is to be; `stack_texts`: the templates of their stacks
- `sizing`: plans for the sizes of clusters; `rules`: the policies attached to them
- `receivers`: addresses that begin an action of a cluster
- `services`: all of them together
"""
