"""Arguments of operations that are secrets: encrypted in rows, and opened only for the call of the cloud.

Rows of stacks without secrets are stored plain, so a secret that comes with a request is encrypted by itself. Where the
database has no keys it is stored as everything else is.
"""

from collections.abc import Mapping
from typing import Any

from homeostat.resources.secrets import is_secret
from homeostat.store.encryption.encrypted_cells import Keyring, decrypt_text, encrypt_text

PLACE = "resource.marks"
ENCRYPTED = "encrypted"
"""The only key of an encrypted value."""


def encrypt(keys: Keyring, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with those encrypted whose names are those of secrets."""
    return {
        name: {ENCRYPTED: encrypt_text(keys, value, PLACE)} if is_secret(name) and isinstance(value, str) else value
        for name, value in arguments.items()
    }


def opened(keys: Keyring, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with what is encrypted opened.

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
    """Return the secrets among opened arguments, so that they can be kept out of texts."""
    return [str(plain[name]) for name, value in encrypted.items() if is_encrypted(value)]
