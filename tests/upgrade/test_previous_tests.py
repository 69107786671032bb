"""The tests of the last release's store, with its own code, on the schema of this version."""

import os
import re
import subprocess

import pytest
from tests.upgrade.installations import CURRENT, RELEASED, check_release

CHOSEN = ("tests/contract/test_store*.py", "tests/contract/test_records.py", "tests/component/test_locks.py")
LEFT_OUT = "tests/contract/test_store_migrating.py"
"""It names the newest revision that its version knows."""
EXACT = "test_migrations_make_the_schema_that_the_code_declares"
"""It fails for any column that this version adds."""
PLAIN = ("-p", "no:cacheprovider", "-p", "no:schemathesis", "-p", "no:anyio")


@pytest.mark.timeout(900)
def test_the_tests_of_the_last_release_pass_on_this_schema() -> None:
    check_release()
    source = RELEASED / "source"
    files = sorted(str(path) for pattern in CHOSEN for path in source.glob(pattern) if str(path).endswith(".py"))
    variables = {
        "PYTHONPATH": str(source / "src"),
        "HOMEOSTAT_MIGRATOR": " ".join(("env", "--unset=PYTHONPATH", *CURRENT)),
    }
    ended = subprocess.run(
        [
            *(CURRENT[0], "-m", "pytest", *PLAIN, "-m", "not heavy", "-k", f"not {EXACT}"),
            *(f"--ignore={source / LEFT_OUT}", *files),
        ],
        cwd=source,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    passed = re.search(r"(\d+) passed", ended.stdout)
    assert passed is not None
    assert int(passed[1]) > 200, ended.stdout
