"""The real ring: workers are processes that are killed, frozen and cut off in the middle of stacks of hundreds."""
