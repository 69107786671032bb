"""The HTTP API as clients see it: a real server and a real worker on a simulated cloud."""
