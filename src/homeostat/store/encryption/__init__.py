"""Secrets in the database.

- `sealed_cells`: cells that only the holders of a key can read
- `keyfile`: the file of keys
- `key_rotation`: sealing with a new key while the service runs
"""
