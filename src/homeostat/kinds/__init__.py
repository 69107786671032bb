"""The kinds of cloud objects, as data: the fields reported, the meaning of status words, and the operations.

The fields to send are those that the properties of resource types set (`resources.kind_fields`), and the few extra ones
given here.

An adapter of the port (`clouds.port`) is written against these definitions, and its contract tests check the adapter
against them (`tests/contract/test_cloud_kinds.py`). Resource types read the meaning of status words from here. Pure.

- `base`: the definition of a kind
- `compute`, `images`, `block_storage`, `shared_file_systems`, `object_storage`, `network`, `network_policies`,
  `network_services`, `load_balancing`, `dns`, `identity`, `key_manager`, `orchestration`, `clustering`, `alarming`,
  `messaging`, `workflows`, `databases`, `container_infrastructure`, `reservations`: the kinds of each service
- `builtin`: kinds of the service itself
- `exclusive`: holdings that two objects cannot share; `effects`: changes that objects cause in related objects
- `registry`: all kinds by name
"""
