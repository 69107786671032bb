"""Base classes of types that need features not available to plug-ins here.

Modules can import and subclass them, so that their remaining types can be loaded; the subclasses are left out, with
the reason in `needs`.
"""

from homeostat.plugins.resource import Resource


class StackUser(Resource):
    needs = "StackUser (it makes users of Keystone)"


class SignalResponder(StackUser):
    needs = "SignalResponder (it makes users of Keystone to sign with; `handle_signal` needs no such class)"


class StackResource(Resource):
    needs = "StackResource (its thing is a stack of its own)"
