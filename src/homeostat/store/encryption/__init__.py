"""Secrets in the database.

- `sealed_cells`: cells that can be read only with a key
- `keyfile`: the file of keys
- `key_rotation`: sealing with a new key while the service runs
"""
