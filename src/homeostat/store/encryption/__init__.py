"""Secrets in the database.

- `encrypted_cells`: cells that can be read only with a key
- `encrypted_arguments`: secret arguments of operations
- `keyfile`: the file of keys
- `key_rotation`: encrypt with a new key while the service runs
"""
