"""The kinds of things in clouds, as data: what the service sends, what a cloud reports, and what its words mean.

An adapter of the port (`clouds.port`) is written against these definitions, and its contract tests check it against
them (`tests/contract/test_cloud_kinds.py`). Resource types read from them what status words mean. Pure.

- `base`: what a kind is
- `compute`, `images`, `block_storage`, `shared_file_systems`, `object_storage`, `network`, `network_policies`,
  `network_services`, `load_balancing`, `dns`, `identity`, `key_manager`, `orchestration`, `clustering`, `alarming`,
  `messaging`, `workflows`, `databases`, `container_infrastructure`, `reservations`: the kinds of each service
- `builtin`: kinds of the service itself
- `exclusive`: what one thing at a time can hold; `effects`: what things change of others
- `registry`: all of them by name
"""
