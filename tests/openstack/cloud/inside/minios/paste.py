"""WSGI module of the application in a paste file: for services whose own module looks for the file in /etc.

sys.argv has the file and the name in it.
"""

import sys

from paste import deploy

application = deploy.loadapp(f"config:{sys.argv[1]}", name=sys.argv[2])
