"""Serves Keystone: `python wsgi.py PORT`. Runs in Keystone's own environment, not in the tests'.

One thread handles the requests: Keystone's AuthContextMiddleware is one object for all of them, and keeps what it knows
of a token in itself while it looks at that token's request.

Nobody logs in with SAML here, and to read its schemas takes as long as the rest of the start: they are left out.
"""

import sys
from unittest.mock import MagicMock

import waitress

port = int(sys.argv.pop())
sys.modules["saml2.xml.schema"] = MagicMock()
from keystone.wsgi.api import application  # noqa: E402  (it reads the command line, which must not hold the port)

waitress.serve(application, host="127.0.0.1", port=port, threads=1)
