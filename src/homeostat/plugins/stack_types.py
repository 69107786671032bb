"""Base classes of types that need what plug-ins do not have here.

They can be imported and derived from, so that the other types of a module can be loaded; types derived from these are
left out, with the reason in `needs`.
"""

from homeostat.plugins.resource import Resource


class StackUser(Resource):
    needs = "StackUser (it makes users of Keystone)"


class SignalResponder(StackUser):
    needs = "SignalResponder (it makes users of Keystone to sign with; `handle_signal` needs no such class)"


class StackResource(Resource):
    needs = "StackResource (its thing is a stack of its own)"
