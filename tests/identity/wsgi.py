"""Serves Keystone with native threads: `python wsgi.py PORT`. Runs in Keystone's own environment, not in the tests'."""

import sys

import waitress

port = int(sys.argv.pop())
from keystone.wsgi.api import application  # noqa: E402  (it reads the command line, which must not hold the port)

waitress.serve(application, host="127.0.0.1", port=port, threads=4)
