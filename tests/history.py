"""The history of this repository, as far as a clone has it."""

import subprocess
from pathlib import Path


def is_shallow(directory: Path) -> bool:
    """Whether a clone lacks older commits."""
    asked = ["git", "rev-parse", "--is-shallow-repository"]
    return subprocess.run(asked, cwd=directory, capture_output=True, text=True, check=True).stdout.strip() == "true"
