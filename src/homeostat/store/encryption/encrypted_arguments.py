"""Secret arguments of operations: encrypted in rows, and decrypted only for the call of the cloud.

Rows of stacks without secrets are stored in plain text, so a secret in a request is encrypted separately. Without keys
it is stored in plain text, too.
"""

from collections.abc import Mapping
from typing import Any

from homeostat.resources.secrets import is_secret
from homeostat.store.encryption.encrypted_cells import Keyring, decrypt_text, encrypt_text

PLACE = "resource.marks"
ENCRYPTED = "encrypted"
"""The only key of an encrypted value."""


def encrypt(keys: Keyring, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with the values of secret names encrypted."""
    return {
        name: {ENCRYPTED: encrypt_text(keys, value, PLACE)} if is_secret(name) and isinstance(value, str) else value
        for name, value in arguments.items()
    }


def opened(keys: Keyring, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with encrypted values decrypted.

    Raises:
        Unreadable: The key is missing.
    """
    return {
        name: decrypt_text(keys, value[ENCRYPTED], PLACE) if is_encrypted(value) else value
        for name, value in arguments.items()
    }


def is_encrypted(value: Any) -> bool:
    return isinstance(value, Mapping) and value.keys() == {ENCRYPTED}


def secrets_of(encrypted: Mapping[str, Any], plain: Mapping[str, Any]) -> list[str]:
    """Return the secrets among decrypted arguments, to keep them out of texts."""
    return [str(plain[name]) for name, value in encrypted.items() if is_encrypted(value)]
