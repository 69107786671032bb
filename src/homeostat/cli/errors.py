"""What ends a command, each with its exit code; the message names the remedy."""

OK = 0
FAILED = 1
USAGE = 2
UNREACHABLE = 3
TO_DO = 4
"""Of a plan that was asked to tell so."""


class Problem(Exception):
    """Ends the command with a message for the user. kind — word for it in JSON output."""

    code = FAILED
    kind = "Failed"


class Fault(Problem):
    """The service refused a request. Takes: status — HTTP code; kind — the wire's `error.type`."""

    def __init__(self, message: str, status: int, kind: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


class Usage(Problem):
    """The command was given something it cannot use."""

    code = USAGE
    kind = "Usage"


class Unreachable(Problem):
    """No service answers."""

    code = UNREACHABLE
    kind = "Unreachable"
