"""What goes wrong in a way that a user can mend."""


class Failure(Exception):
    """Its text says what failed, and where to look: it is shown without a traceback."""
