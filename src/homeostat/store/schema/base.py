"""The metadata that all tables belong to."""

from sqlalchemy import BigInteger, Integer, MetaData

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(column_0_label)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)
Sequence = BigInteger().with_variant(Integer, "sqlite")
"""The type of auto-incremented keys: SQLite increments only columns declared INTEGER."""
