"""The command line: settings, the service's processes, and a client of the HTTP API.

Each module with commands declares its flags at the end, built from the parts in `flags`. Commands return exit codes.

- `command_index`: names and summaries of all commands; `running`: execution of a command; `errors`: exceptions that
  end it; `confirmation`: questions before data is lost
- `stack_commands`, `stack_actions`, `rollouts`, `plan`, `history`, `graph`, `health_findings`: commands on stacks,
  through a service; `client`, `connection`: the client of the service
- `stack_files`, `parameter_resets`: the input of `homeostat up`; `adoption_plan`: plans of adoptions
- `cluster_import`, `cluster_import_plan`: the import of clusters from Senlin
- `operator_commands`: commands on the database, with `doctor`, `reports`, `maintenance`, `key_commands`,
  `registration`; `openstack_checks`, `openstack_project`: checks of an OpenStack
- `backup`: backups of a state directory; `state_archive`: their format; `untracked`: things that belong to no stack
- `settings`, `settings_file`, `service_flags`: settings of a service, their file, and their flags; `flags`: parts of
  flags
- `shared_environments`: the operator's environments
- `service`, `supervisor`, `state_directory`, `logs`: the processes of a service, their files and log formats
- `follow`, `views`, `explain`, `tree`, `plan_tree`, `pictures`, `graph_pictures`, `rollout_pictures`, `output`: output
- `completion`: completion scripts for shells
- `demo`, `demo_rollout`, `demo_cluster`: the demonstrations; `demonstration`: their common base
"""
