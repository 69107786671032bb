"""Serves one API of OpenStack: python -m minios.wsgi SERVICE MODULE PORT [ARGUMENT…].

MODULE is the service's own WSGI module (it has `application`), ARGUMENT what it finds in sys.argv. One process, with
native threads.

HTTP faults (`faults.py`) come in front of the service, such as
{"kind": "http", "service": "nova-api", "method": "POST", "path": "/servers$", "status": 503, "times": 2}. Keys:
  status   answer this instead of calling the service
  after    true: let the service do the work, then answer `status`: the reply is lost
  delay    seconds to wait first
  headers  of the answer, such as {"Retry-After": "1"}
  body     of the answer
and to select: service, method, path, agent (the client as it calls itself).
"""

import http.client
import importlib
import json
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import waitress

from minios import faults

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
THREADS = 8
CHANNEL_S = 300
ONE_AT_A_TIME = ("keystone",)
"""Services that answer one request at a time. Keystone's middleware keeps the token of a request on an object that all
threads share: a trust that is passed on could be recorded as one of the user."""


def one_at_a_time(app: Application) -> Application:
    lock = threading.Lock()

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        with lock:
            answer = app(environ, start_response)
            try:
                return [b"".join(answer)]
            finally:
                close = getattr(answer, "close", None)
                if close is not None:
                    close()

    return serve


class FaultInjector:
    def __init__(self, app: Application, service: str) -> None:
        self._app = app
        self._service = service

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = {
            "method": environ["REQUEST_METHOD"],
            "path": environ.get("PATH_INFO", ""),
            "agent": environ.get("HTTP_USER_AGENT", ""),
        }
        rule = faults.find("http", service=self._service, **request)
        if rule is None:
            return self._app(environ, start_response)
        time.sleep(float(rule.get("delay") or 0))
        status = rule.get("status")
        if not status:
            return self._app(environ, start_response)
        lost = self._do_silently(environ) if rule.get("after") else ""
        faults.log(rule, service=self._service, lost=lost, **request)
        reason = http.client.responses.get(status, "Injected")
        made_up = {"error": {"code": status, "message": "injected fault"}}
        body = str(rule.get("body") or json.dumps(made_up)).encode()
        headers = {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "X-Minios-Fault": "injected",
            **rule.get("headers", {}),
        }
        start_response(f"{status} {reason}", list(headers.items()))
        return [body]

    def _do_silently(self, environ: dict[str, Any]) -> str:
        """The work is done, but the caller never learns of it. Gives the status that is lost."""
        statuses: list[str] = []

        def start(status: str, *_: object) -> Callable[[bytes], None]:
            statuses.append(status)
            return lambda _: None

        answer = self._app(environ, start)
        for _ in answer:
            pass
        close = getattr(answer, "close", None)
        if close is not None:
            close()
        return statuses[-1] if statuses else ""


def filter_factory(global_conf: object, service: str, **_: object) -> Callable[[Application], FaultInjector]:
    """Of a filter for paste, for a service with a server of its own."""
    return lambda app: FaultInjector(app, service)


def main() -> None:
    service, module, port, *arguments = sys.argv[1:]
    # The services parse sys.argv themselves when they are imported.
    sys.argv = [service, *arguments]
    app = importlib.import_module(module).application
    waitress.serve(
        FaultInjector(one_at_a_time(app) if service in ONE_AT_A_TIME else app, service),
        host="127.0.0.1",
        port=int(port),
        threads=THREADS,
        ident=None,
        channel_timeout=CHANNEL_S,
        clear_untrusted_proxy_headers=True,
    )


if __name__ == "__main__":
    main()
