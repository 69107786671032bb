"""HTTP without any knowledge of stacks.

- `connections`, `peers`, `path_convertors`: from the first byte to the route; which user's process is calling
- `inputs`: bodies, booleans and numbers as clients send them
- `heavy_requests`, `rate_limits`: how much one caller may request
- `fair_places`, `shares`, `connection_shares`: how much each of those who ask gets of what there is
- `answer_budget`: the bytes of answers
- `responses`, `faults`, `event_streams`, `versions`, `health`: responses; `addresses`: the addresses in links
"""
