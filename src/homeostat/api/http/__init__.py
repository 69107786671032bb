"""Request handling that is the same for every route.

- `app`, `server`: the application and the process that serves it
- `connections`, `middleware`, `path_convertors`: from the first byte to the route
- `context`: what a handler is given
- `heavy_requests`, `rate_limits`: how much one caller may request
- `responses`, `errors`, `faults`, `event_streams`: what is sent back
"""
