"""Base classes whose types need more than plug-ins have here. They can be imported and derived from, so that the other
types of a module are there; their own types are left out, and the reason is named."""

from homeostat.plugins.resource import Resource


class StackUser(Resource):
    needs = "StackUser (it makes users of Keystone)"


class SignalResponder(StackUser):
    needs = "SignalResponder (it makes users of Keystone to sign with; `handle_signal` needs no such class)"


class StackResource(Resource):
    needs = "StackResource (its thing is a stack of its own)"
