"""Resource types written with `handle_create`, `check_create_complete` and the like, as Heat's plug-ins are.

A plug-in changes at most its imports: `from homeostat.plugins import attributes, constraints, exception, properties,
resource, support, translation`. What it can rely on is in docs/reference/plug-ins.md, the reasons in docs/adr/0021.

loading — finds plug-ins; types — what the planner sees of them; cloud — runs their methods, with every thing of theirs
a record in the database; resource and the others — what they import.
"""
