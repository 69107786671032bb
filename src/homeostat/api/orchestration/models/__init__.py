"""Bodies of requests and responses: they document both, requests are checked by them, responses built as them.

One module for each subject:

- `stacks`, `resources`, `graphs`, `explanations`, `convergence`, `events`, `health`, `previews`, `rollouts`,
  `templates`, `about`, `configs`
"""
