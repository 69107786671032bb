"""Files of revisions: each text is stored once under its hash, however many revisions name it.

A nested stack has all files of its parent, which are hundreds in a large deployment. They are neither read nor stored
again for each stack.
"""

import hashlib
import threading
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any
from weakref import WeakKeyDictionary

from cachetools import LRUCache
from sqlalchemy import Engine, Select, Text, select, type_coerce
from sqlalchemy.engine.interfaces import Dialect

from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.encryption.encrypted_cells import Keyring, keys_of
from homeostat.store.schema import cell_of
from homeostat.store.sql.prepared import prepared

Rows = Sequence[Mapping[str, str]]
"""Encoded rows of the table."""
CACHE_MAX = 32 * 1024 * 1024
"""Size of the cache of a process for one database, in characters."""


class StoredFiles(dict[str, str]):
    """Texts by file name, as read from the database, with their hashes."""

    def __init__(self, texts: Mapping[str, str], hashes: Mapping[str, str]) -> None:
        super().__init__(texts)
        self.hashes = hashes


class _Cache:
    """A thread-safe cache of texts by hash, decrypted with these keys.

    The cache needs no invalidation, since the text of a hash never changes.
    """

    def __init__(self, keys: Keyring) -> None:
        self.keys = keys
        self._texts: LRUCache[str, str] = LRUCache(CACHE_MAX, lambda text: min(len(text) + 100, CACHE_MAX))
        self._lock = threading.Lock()

    def among(self, hashes: set[str]) -> dict[str, str]:
        with self._lock:
            return {hash: text for hash in hashes if (text := self._texts.get(hash)) is not None}

    def add(self, texts: Mapping[str, str]) -> None:
        with self._lock:
            self._texts.update(texts)


_CACHES: WeakKeyDictionary[Engine, _Cache] = WeakKeyDictionary()


def load(tx: Transaction, hashes: Mapping[str, str]) -> StoredFiles:
    """Return the texts of files, given their hashes by file name.

    Raises:
        KeyError: A text is not stored.
        Unreadable: A text cannot be decrypted, since its key is missing.
    """
    if not hashes:
        return StoredFiles({}, hashes)
    cache = _cache_of(tx)
    wanted = set(hashes.values())
    texts = cache.among(wanted)
    missing = wanted - texts.keys()
    if missing:
        read = {row.hash: row.content for row in _contents(tx, sorted(missing))}
        cache.add(read)
        texts |= read
    return StoredFiles({name: texts[hash] for name, hash in hashes.items()}, hashes)


@prepared
def _contents(hashes: Sequence[str]) -> Select[Any]:
    return select(schema.file.c.hash, schema.file.c.content).where(schema.file.c.hash.in_(hashes))


def _cache_of(tx: Transaction) -> _Cache:
    keys = keys_of(tx.dialect)
    cache = _CACHES.get(tx.engine)
    # Changed keys start a new cache: all its texts can be decrypted with the present keys.
    if cache is None or cache.keys is not keys:
        cache = _CACHES[tx.engine] = _Cache(keys)
    return cache


def hashes_of(files: Mapping[str, str]) -> Mapping[str, str]:
    """Return the hashes of texts by name."""
    if isinstance(files, StoredFiles):
        return files.hashes
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}


def encode(dialect: Dialect, files: Mapping[str, str]) -> tuple[Mapping[str, str], Rows]:
    """Return the hashes of texts by name, and the rows to store."""
    # Files read from a revision exist, and stay: only files that no revision names are purged.
    if isinstance(files, StoredFiles):
        return files.hashes, []
    hashes = hashes_of(files)
    contents = {hashes[name]: text for name, text in files.items()}
    column = schema.file.c.content
    return hashes, [{"hash": hash, "content": cell_of(dialect, column, text)} for hash, text in contents.items()]


def store(tx: Transaction, rows: Rows) -> None:
    """Store texts; overwrite an existing one only if it is encrypted with another key, which may be lost."""
    if not rows:
        return
    new = tx.insert(schema.file)
    # As text, to compare the cells as stored: the column's type would decrypt and encrypt them.
    stored, wanted = type_coerce(schema.file.c.content, Text), type_coerce(new.excluded.content, Text)
    tx.execute(
        new.on_conflict_do_update(index_elements=["hash"], set_={"content": wanted}, where=stored != wanted),
        sorted(rows, key=itemgetter("hash")),  # in a fixed order: two requests with shared files must not deadlock
    )
