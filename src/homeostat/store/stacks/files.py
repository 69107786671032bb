"""Files of revisions: texts by their hash, stored once however many revisions name them.

A nested stack has all files of the stack around it, which are hundreds in a large deployment. They are neither read nor
stored again for each stack.
"""

import hashlib
import threading
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any
from weakref import WeakKeyDictionary

from cachetools import LRUCache
from sqlalchemy import Connection, Engine, Select, Text, select, type_coerce
from sqlalchemy.engine.interfaces import Dialect

from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.encryption.encrypted_cells import Keyring, keys_of
from homeostat.store.schema import cell_of
from homeostat.store.sql.prepared import prepared

Rows = Sequence[Mapping[str, str]]
"""Encoded rows of the table."""
CACHE_MAX = 32 * 1024 * 1024
"""Size of the cache of a process for one database, in characters."""


class StoredFiles(dict[str, str]):
    """Texts by name that were read from the database, with their hashes by name."""

    def __init__(self, texts: Mapping[str, str], hashes: Mapping[str, str]) -> None:
        super().__init__(texts)
        self.hashes = hashes


class _Cache:
    """A cache of texts by hash, as read with certain keys. Safe to share between threads.

    It needs no invalidation, since the text of a hash never changes.
    """

    def __init__(self, keys: Keyring) -> None:
        self.keys = keys
        self._texts: LRUCache[str, str] = LRUCache(CACHE_MAX, lambda text: min(len(text) + 100, CACHE_MAX))
        self._lock = threading.Lock()

    def among(self, hashes: set[str]) -> dict[str, str]:
        with self._lock:
            return {each: text for each in hashes if (text := self._texts.get(each)) is not None}

    def add(self, texts: Mapping[str, str]) -> None:
        with self._lock:
            self._texts.update(texts)


_CACHES: WeakKeyDictionary[Engine, _Cache] = WeakKeyDictionary()


def load(tx: Connection, hashes: Mapping[str, str]) -> StoredFiles:
    """Return the texts of files.

    Args:
        hashes: The hashes, by file name.

    Raises:
        KeyError: A text is not stored.
        Unreadable: A text cannot be decrypted, since its key is missing.
    """
    if not hashes:
        return StoredFiles({}, hashes)
    remembered = _cache_of(tx)
    wanted = set(hashes.values())
    texts = remembered.among(wanted)
    missing = wanted - texts.keys()
    if missing:
        read = {row.hash: row.content for row in _contents(tx, sorted(missing))}
        remembered.add(read)
        texts |= read
    return StoredFiles({name: texts[each] for name, each in hashes.items()}, hashes)


@prepared
def _contents(hashes: Sequence[str]) -> Select[Any]:
    return select(schema.file.c.hash, schema.file.c.content).where(schema.file.c.hash.in_(hashes))


def _cache_of(tx: Connection) -> _Cache:
    keys = keys_of(tx.dialect)
    found = _CACHES.get(tx.engine)
    # With other keys the cache begins again, so that it only holds texts which these keys can decrypt.
    if found is None or found.keys is not keys:
        found = _CACHES[tx.engine] = _Cache(keys)
    return found


def encode(dialect: Dialect, files: Mapping[str, str]) -> tuple[Mapping[str, str], Rows]:
    """Return the hashes of texts by name, and the rows to store."""
    # Files that were read from a revision exist, and stay: only files that no revision names are purged.
    if isinstance(files, StoredFiles):
        return files.hashes, []
    hashes = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
    contents = {hashes[name]: text for name, text in files.items()}
    column = schema.file.c.content
    return hashes, [{"hash": each, "content": cell_of(dialect, column, text)} for each, text in contents.items()]


def store(db: Database, tx: Connection, rows: Rows) -> None:
    """Store texts; an existing one is only overwritten if it is encrypted with another key, which may be lost."""
    if not rows:
        return
    new = db.insert(schema.file)
    # As text, so that the cells are compared as stored, and not decrypted or encrypted by the column's type.
    there, wanted = type_coerce(schema.file.c.content, Text), type_coerce(new.excluded.content, Text)
    tx.execute(
        new.on_conflict_do_update(index_elements=["hash"], set_={"content": wanted}, where=there != wanted),
        sorted(rows, key=itemgetter("hash")),  # in one order: two requests that share files must not block each other
    )
