"""Resource types: what users may name in a template, and what it means to a cloud. Pure.

`base` what a type is · `schema` of properties and attributes, `constraints` and `rules` on them, `named` things of a
cloud that they name · `comparison` of wanted and seen · `graph` what a type requires unsaid · `registry` all types by
name, `discovery` those of others, `lost` those that are gone, `support` how far each is supported · `nested` types that
are stacks: `groups` of members, `composed` of parts · `userdata`, `mime`, `signals`, `signing` what servers are given
and tell · `families` the types themselves.
"""
