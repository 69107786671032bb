"""Arguments of several commands."""

from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter

TIMEOUT_S = 300.0
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def lasting(text: str) -> float:
    """Parse `90`, `90s`, `15m`, `2h` or `1d` into seconds. Raise ArgumentTypeError."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS else (text, "s")
    try:
        seconds = float(number) * UNITS[unit]
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ArgumentTypeError(f"{text!r}: a time such as 90, 90s, 15m, 2h or 1d is needed")
    return seconds


def teach(parser: ArgumentParser, *examples: str) -> ArgumentParser:
    """Append examples to the help of a command."""
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.epilog = "\n".join(["examples:", *(f"  {example}" for example in examples)])
    return parser


def add_stack(parser: ArgumentParser) -> None:
    parser.add_argument("stack", metavar="<stack>", help="Name or id of the stack")


def add_resource(parser: ArgumentParser) -> None:
    parser.add_argument("resource", metavar="<resource>", help="Name of the resource")


def add_wait(parser: ArgumentParser, state: str) -> None:
    parser.add_argument("--wait", action="store_true", help=f"Wait until {state}")
    add_timeout(parser)


def add_timeout(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--timeout",
        metavar="<time>",
        type=lasting,
        default=TIMEOUT_S,
        help="How long to wait at most, like 90s, 15m or 2h (default: 5m)",
    )
