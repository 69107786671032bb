#!/usr/bin/env python3
"""What a web server of the examples runs: a page that says which server answers. The template fills in the words."""

import http.server
import os

NAME = os.environ.get("HOMEOSTAT_NAME", "server")
PAGE = r"""$message""".encode() + f", says {NAME}\n".encode()


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_):
        """Health checks would fill the console."""


http.server.ThreadingHTTPServer((os.environ.get("HOMEOSTAT_ADDRESS", ""), int("$port")), Page).serve_forever()
