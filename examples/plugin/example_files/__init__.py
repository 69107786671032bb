"""Resource types for files."""

import os
from pathlib import Path


def directory() -> Path:
    """Where the files are."""
    found = Path(os.environ.get("EXAMPLE_FILES_DIR", "/tmp/example-files"))
    found.mkdir(parents=True, exist_ok=True)
    return found
