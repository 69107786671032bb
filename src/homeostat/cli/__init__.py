"""The command line: settings, the service's processes, and a client of the HTTP API.

Each module with commands declares their flags at its end, with the parts in `flags`.

- `stack_commands`, `stack_actions`, `rollouts`, `plan`, `history`: commands that talk to a service, by `client`
- `operator_commands`: commands on the database, by `doctor`, `reports`, `maintenance`, `key_commands`, `registration`
- `settings`, `service_flags`: the settings of a service, and their flags
- `service`, `supervisor`, `state_directory`: the processes of a service and their files
- `follow`, `views`, `explain`, `tree`, `pictures`, `rollout_pictures`, `output`: what is shown
- `demo`, `demo_rollout`: the demonstrations, on their common base `demonstration`
"""
