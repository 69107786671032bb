"""The kinds of things in clouds, as data: what the service sends, what a cloud reports, and what its words mean.

An adapter of the port (`clouds.port`) is written against these definitions, and its contract tests check it against
them (`tests/contract/test_cloud_kinds.py`). Resource types read from them what status words mean. Pure.

- `base`: what a kind is
- a module for each service: its kinds
- `exclusive`: what one thing at a time can hold; `effects`: what things change of others
- `registry`: all of them by name
"""
