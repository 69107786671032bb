"""The execution of steps.

- `executor`: steps as calls of a cloud; `encrypted_operations`: operations with secret arguments
- `recovery_calls`: workflows and webhooks of recoveries
- `model_servers`: lookup of model servers for groups
"""
