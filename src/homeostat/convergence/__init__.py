"""The loop: the only package with concurrency.

`pass_` one run of claim, load, plan, act, record for a shard · `loading` its world · `definitions` what should be in
it · `performing` steps become calls of a cloud · `children` nested stacks as the reality of resources, `series`
groups that change batch by batch · `observing` looks at the world in bulk · `board`, `redis_board` and `conductor`
TaskFlow's job boards and conductor · `worker` all of it in one process · `explaining` why a stack does not move ·
`clock` time · `metrics`, `exposition`, `traces`, `log_context` what is told about all that
"""

import warnings

# TaskFlow imports it when it is loaded itself; nobody here can do anything about that.
warnings.filterwarnings("ignore", "eventletutils module is deprecated", DeprecationWarning)
