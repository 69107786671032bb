"""The loop: the only package with concurrency.

`pass_` one run of claim, load, plan, act, record for a shard · `performing` steps become calls of a cloud ·
`children` nested stacks as the reality of resources · `observing` looks at the world in bulk · `board` and
`conductor` TaskFlow's job board and conductor over the shard table · `worker` all of it in one process · `clock` time
"""
