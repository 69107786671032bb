"""The command line: settings, the service's processes, and a client of the HTTP API. Imported by `main` alone.

`arguments.py` defines the commands. `commands.py` and `stack_actions.py` implement those that talk to a service;
`service.py` and `supervisor.py` manage the service's own processes. Nothing here imports the API's or the engine's
code.
"""
