"""Values that cross package borders. Imports nothing of the rest, does no I/O.

`errors` who must act on what went wrong · `status` the state words and legal transitions ·
`desired` what should exist · `observed` what was seen · `world` what deciding needs · `plan` what was decided.
"""
