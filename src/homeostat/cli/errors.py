"""Exceptions that end a command, each with its exit code. The message names the remedy."""

OK = 0
FAILED = 1
USAGE = 2
UNREACHABLE = 3
TO_DO = 4
"""Exit code of a plan with changes, with --detailed-exit-code."""


class Problem(Exception):
    """An error that ends the command with a message for the user.

    Attributes:
        kind: `type` of the error in JSON output.
    """

    code = FAILED
    kind = "Failed"


class Fault(Problem):
    """The service refused a request.

    Args:
        status: HTTP status.
        kind: `error.type` of the response.
    """

    def __init__(self, message: str, status: int, kind: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


class Usage(Problem):
    """The command cannot use its input."""

    code = USAGE
    kind = "Usage"


class Unreachable(Problem):
    """No service answers."""

    code = UNREACHABLE
    kind = "Unreachable"
