#!/usr/bin/env python3
"""A web server that thinks about each answer, so that one is always under way. The template fills in the words."""

import http.server
import os
import time

NAME = os.environ.get("HOMEOSTAT_NAME", "server")
PAGE = rb"""$message""" + f", says {NAME}\n".encode()
THINKS_S = 0.3


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(THINKS_S)
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_):
        """Many requests would fill the console."""


http.server.ThreadingHTTPServer((os.environ.get("HOMEOSTAT_ADDRESS", ""), int("$port")), Page).serve_forever()
