"""What the command says while it works."""

import time

_START = time.monotonic()


def say(text: str) -> None:
    print(f"[{time.monotonic() - _START:6.1f}s] {text}", flush=True)
