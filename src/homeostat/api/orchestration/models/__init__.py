"""Schemas of responses, for the OpenAPI document. Responses are built as plain data, not from these classes.

One module for each subject:

- `stacks`, `resources`, `graphs`, `explanations`, `convergence`, `events`, `health`, `previews`, `rollouts`,
  `templates`, `about`, `configs`
"""
