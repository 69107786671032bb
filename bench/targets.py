"""The figures to reach."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """One number to reach. figure, n, database — which measurement; limit — at most this, or with `least` at least."""

    what: str
    figure: str
    limit: float
    n: int
    database: str = "sqlite"
    least: bool = False


@dataclass(frozen=True, slots=True)
class Cost:
    """What a user's change costs, at most `limit` on every database, or `on_sqlite` there."""

    what: str
    figure: str
    unit: str
    n: int
    limit: float
    on_sqlite: float | None = None

    def on(self, database: str) -> Target:
        limit = self.on_sqlite if database == "sqlite" and self.on_sqlite is not None else self.limit
        return Target(self.what, self.figure, limit, self.n, database)


M = 1_000_000
PG = "postgresql"
MARIADB = "mariadb"
REAL = "openstack"
RESTS = (10, 100, 1_000)
"""Resources at rest on a real OpenStack, and `LOOK_CALLS_MAX` requests of a look at them, however many they are."""
LOOK_CALLS_MAX = 7
COSTS = (
    Cost("Attribute known to dependant started, flat 10,000, median", "attribute_to_dependant.p50", "ms", 10_000, 20),
    Cost("The same, 99 %", "attribute_to_dependant.p99", "ms", 10_000, 100),
    Cost("The same in a stack of 200, median", "attribute_to_dependant.p50", "ms", 200, 10),
    Cost("One change in a flat 10,000, worker", "change.one.update.worker.cpu", "CPU s", 10_000, 0.03),
    Cost("No-op of it, accepted", "change.none.update.api.cpu", "CPU s", 10_000, 0.1),
    Cost("No-op of it, worker", "change.none.update.worker.cpu", "CPU s", 10_000, 0.01),
    Cost("No-op of it, first GET afterwards", "change.none.first_get.api.cpu", "CPU s", 10_000, 0.002),
    Cost("Tiny stack, all processes", "tiny.workers_1.all.cpu", "CPU ms/stack", 400, 10, 4),
    Cost("Tiny stack, four workers beside one", "tiny.workers_4.to_one", "ratio", 400, 1.05),
    Cost("Tiny stack, statements", "tiny.statements", "statements", 1, 8),
    Cost("Tiny stack, transactions that write", "tiny.transactions", "transactions", 1, 2),
    Cost("Show a tiny stack, API", "api.show_tiny_stack.cpu", "CPU ms", 1_000, 0.5),
    Cost("List of 300 resources, API", "api.list_resources_of_300.cpu", "CPU ms", 300, 3),
    Cost("List of 600 events, API", "api.list_events_of_300.cpu", "CPU ms", 300, 3),
    Cost("List of 1,000 stacks, API", "api.list_all_stacks.cpu", "CPU ms", 1_000, 4),
    Cost("Create beside 20 busy processes, to that without", "create.crowded.to_alone", "ratio", 3_000, 1.03),
    Cost("10,000 servers being built, worker", "building.worker.cpu", "% of a core", 10_000, 1),
    Cost("1,000 quiet stacks of volumes, worker", "idle.worker.cpu", "% of a core", 1_000, 1),
    Cost("Memory of a worker at rest", "memory.worker.rest", "MiB", 10_000, 80),
    Cost("Memory after a stack of 10,000, to that at rest", "memory.worker.after_to_rest", "ratio", 10_000, 1.1),
    Cost("Deletion of 2,000 nested stacks", "delete.tree.worker.seconds", "s", 2_000, 5),
)
TARGETS = (
    Target("Four workers beside one, CPU of a resource", "create.independent.workers_4.to_one", 1.05, 4_000, PG),
    *(
        Target(f"Start of {words}", f"start.{name}.cpu", limit, 1)
        for name, words, limit in (
            ("help", "`homeostat --help`", 0.12),
            ("api", "`api`", 0.7),
            ("worker", "`worker`", 0.7),
            ("serve", "`serve`", 1.0),
        )
    ),
    Target("Create, independent, SQLite", "create.independent.rate", 8_000, 10_000, least=True),
    Target("Create, independent, neighbours left out", "create.independent.rate_unhindered", 8_000, 10_000, least=True),
    Target("Create, independent, two workers", "create.independent.workers_2.rate", 5_000, 20_000, PG, least=True),
    Target("Two cores by CPU time, two workers", "create.independent.workers_2.by_cpu", 5_000, 20_000, PG, least=True),
    Target("CPU of one resource, SQLite", "create.independent.cpu", 0.25, 10_000),
    Target("CPU of one resource, worker", "create.independent.workers_2.cpu", 0.25, 20_000, PG),
    Target("Share of the bare row traffic", "create.independent.to_bare_rows", 1 / 3, 10_000, least=True),
    Target("Share of the bare row traffic", "create.independent.to_bare_rows", 1 / 3, 10_000, PG, least=True),
    *(
        Target(f"Create, {words}, beside PostgreSQL", f"create.{shape}.to_postgresql", 0.5, 2_000, MARIADB, least=True)
        for shape, words in (("independent", "independent"), ("group", "a group"))
    ),
    *(
        Target(f"Page of {words}: {what}", f"page.{shape}.{figure}", limit, n)
        for shape, words, n in (("independent", "1,000 resources", 1_000), ("group", "a group of 100,000", 100_000))
        for what, figure, limit in (
            ("first paint", "overview.first_paint", 1_000),
            ("all of it shown", "overview.shown", 1_000),
            ("loaded", "overview.loaded", 300),
            ("picture shown", "picture.shown", 1_000),
            ("drawn after an event, 99 %", "drawn_after_event.p99", 100),
        )
    ),
    *(
        Target(f"Growth from 10,000 to 1,000,000: {operation}, {words}", f"{operation}.group.{what}", 1.05, M, kind)
        for kind in ("sqlite", PG)
        for operation in ("create", "delete")
        for what, words in (("growth_cpu", "CPU time"), ("growth", "time"))
    ),
    Target("Peak memory: a million created, changed, deleted", "delete.group.peak_memory", 300, M),
    Target("Peak memory: a million created, changed, deleted", "delete.group.peak_memory", 300, M, PG),
    Target("No-op update of 10,000, CPU", "no_op_update.independent.cpu_seconds", 2, 10_000),
    Target("No-op update of 10,000", "no_op_update.independent.seconds", 2, 10_000),
    Target("No-op update of 10,000", "no_op_update.independent.seconds", 2, 10_000, PG),
    Target("One more member in a million, CPU", "one_change_update.group.cpu_seconds", 1, M),
    Target("One more member in a million", "one_change_update.group.seconds", 1, M),
    Target("One more member in a million", "one_change_update.group.seconds", 1, M, PG),
    Target("Attribute known to dependant started, 99 %", "attribute_to_dependant.p99", 250, 200),
    Target("Attribute known to dependant started, 99 %", "attribute_to_dependant.p99", 250, 200, PG),
    Target("Small stack while 100,000 are created, median", "small_stack_beside_100000.p50", 2_000, 10),
    Target("Small stack while 100,000 are created, 99 %", "small_stack_beside_100000.p99", 2_000, 10),
    Target("Small stack while 100,000 are created, median", "small_stack_beside_100000.p50", 2_000, 10, PG),
    Target("Small stack while 100,000 are created, 99 %", "small_stack_beside_100000.p99", 2_000, 10, PG),
    *(
        Target(f"API beside a million resources, {words}, 99 %", f"api.{name}.p99", 100, 1_000_000)
        for name, words in (
            ("list_stacks", "list of stacks"),
            ("show_stack", "stack with a group of a million"),
            ("show_group_stack", "stack of the group"),
            ("list_resources", "its one resource, listed"),
            ("show_group", "the group"),
            ("show_member", "one member"),
            ("list_events", "a page of events"),
            ("explain", "explain"),
            ("accept_update", "an update accepted"),
        )
    ),
    *(
        Target(f"API, 50 clients at 100,000 resources, {words}, 99 %", f"crowd_50.{name}.p99", 100, 100_000, kind)
        for kind in ("sqlite", PG)
        for name, words in (
            ("show", "a stack"),
            ("list_stacks", "list of stacks"),
            ("list_resources", "resources of a stack, mostly of 300"),
            ("list_events", "a page of events"),
            ("create", "a create accepted"),
            ("update", "an update accepted"),
            ("update_large", "an update of 300 resources accepted"),
            ("delete", "a delete accepted"),
        )
    ),
    Target("API, 200 clients for 10 minutes, writes lost", "crowd_200.lost", 0, 100_000),
    Target("API, 200 clients for 10 minutes, wrong answers", "crowd_200.refused", 0, 100_000),
    Target("Template of 10,000 read, compiled, checked, planned", "read.all.seconds", 5, 10_000),
    Target("Peak memory of that", "read.all.peak_memory", 300, 10_000),
    Target("Growth of its CPU time from 1,000 resources", "read.all.growth_cpu", 1.1, 10_000),
    Target("API, stack of 300, median", "api.show_stack_of_300.p50", 8, 300),
    Target("API, stack of 300, CPU of client and server", "api.show_stack_of_300.cpu", 8, 300),
    Target("API, resources of a stack of 300, median", "api.list_resources_of_300.p50", 15, 300),
    Target("Metadata of a member, 1,000 of 100,000 reporting a second", "rollout.read.p99", 5, 100_000, PG),
    Target("Reports of members a second, as fast as it goes", "rollout.reports.rate", 2_000, 100_000, PG, least=True),
    Target("Each of them, 99 %", "rollout.reports.p99", 50, 100_000, PG),
    Target("Killed process to its recovery begun, by events, 99 %", "recovery.events.begun.p99", 1_000, 10),
    Target("The same, by polling every 10 s", "recovery.polling.begun.p99", 11_000, 10),
    Target("From there until it is healthy, 99 %", "recovery.events.ended.p99", 3_000, 10),
    Target("Health of 10,000 nodes looked at every 10 s, % of a core", "health.all.cpu", 25, 10_000, PG),
    Target("New definition for the first of 100,000, its step begun, CPU", "definition.step_1.begin", 100, 100_000, PG),
    Target("The member changed", "definition.step_1.change", 100, 100_000, PG),
    Target("Its thing noted, which has to report", "definition.step_1.note", 100, 100_000, PG),
    Target(
        "Old definition for 5,000 of 100,000, from a failing report, CPU", "definition.back.begin", 100, 100_000, PG
    ),
    Target("60 servers with ports and volumes, time beside a script", "openstack.make.to_script", 1.15, 60, REAL),
    Target("Requests that change something, meanwhile", "openstack.make.service.mutating", 1, 60, REAL),
    Target("Requests that only look, meanwhile", "openstack.make.service.reading", 0.2, 60, REAL),
    *(
        Target(f"Requests of a look at {n:,} resources at rest", "openstack.rest.reading", LOOK_CALLS_MAX, n, REAL)
        for n in RESTS
    ),
    Target("Server deleted by hand, seen by a notification", "openstack.heal.notified.seen", 1, 5, REAL),
    Target("Another one requested after that", "openstack.heal.notified.replaced", 1, 5, REAL),
    Target("Server deleted by hand, seen by a look every 10 s", "openstack.heal.unnotified.seen", 10, 5, REAL),
    Target("Another one requested after that", "openstack.heal.unnotified.replaced", 1, 5, REAL),
)
