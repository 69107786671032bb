"""Entry point of `python -m homeostat`."""

import sys

from homeostat.main import main

if __name__ == "__main__":
    sys.exit(main())
