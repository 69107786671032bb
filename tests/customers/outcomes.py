"""Print the outcome of each test of a stream of subunit, as JSON; run in the environment of tempest."""

import json
import sys

import subunit
import testtools

ENDS = ("success", "fail", "skip", "xfail", "uxsuccess")


class Outcomes(testtools.StreamResult):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def status(self, test_id: str | None = None, test_status: str | None = None, **_: object) -> None:
        if test_id and test_status in ENDS:
            self.found[test_id] = test_status


outcomes = Outcomes()
subunit.ByteStreamToStreamResult(sys.stdin.buffer, non_subunit_name="output").run(outcomes)
print(json.dumps(outcomes.found))
