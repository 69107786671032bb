"""The worker process."""

import signal
import threading
from argparse import Namespace
from typing import TYPE_CHECKING

from homeostat.cli.errors import OK, Problem
from homeostat.cli.logs import start_logging
from homeostat.cli.operator_commands import load_plugins
from homeostat.cli.settings import ServiceSettings
from homeostat.composition.access import signal_queues, stack_users, trusts
from homeostat.composition.clouds import clouds, outbound_rules, regions, shared_environment
from homeostat.composition.clustering import lifecycle_hooks
from homeostat.composition.database import ready_database
from homeostat.composition.garbage import spare_the_collector
from homeostat.composition.notifications import stack_notifier
from homeostat.composition.observability import serve_metrics, traced
from homeostat.model.health_policy import DEFAULT_VANTAGE

if TYPE_CHECKING:
    from homeostat.clouds.outbound import Outbound
    from homeostat.convergence.engine import Urls

ASKED_S = 3.0
"""Time limit in seconds for the answer of a URL that approves a rollout."""


def worker(arguments: Namespace) -> int:
    """Run a worker until SIGTERM or SIGINT; the worker then finishes its passes and releases its shards."""
    from homeostat.clock import AgreedClock, Entropy
    from homeostat.clouds.outbound import Outbound
    from homeostat.convergence.limits import Limits
    from homeostat.convergence.worker import Worker
    from homeostat.model.errors import Transient, in_detail
    from homeostat.notifications.sinks import Sinks, installed_sinks
    from homeostat.observability.memory import Memory

    settings = ServiceSettings.of(arguments)
    start_logging(settings.log_level, settings.log_json)
    load_plugins(arguments)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    regions(settings, None).close()  # reports wrong settings before any work
    with (
        ready_database(settings) as db,
        clouds(settings, db) as (shared_cloud, of_project),
        traced(settings, "worker"),
    ):
        if settings.metrics_port is not None:
            serve_metrics(db, settings.metrics_host, settings.metrics_port)
        of_stacks, outbound = trusts(settings, db), Outbound(outbound_rules(settings))
        users = (stack_users(settings, db), signal_queues(settings, db))
        sinks = Sinks(of_project, outbound, installed_sinks().kinds)
        worker_instance = Worker(
            db,
            shared_cloud,
            AgreedClock(db.agreed_now),
            Entropy(),
            Limits(
                depth_max=settings.depth_max,
                resources_max=settings.resources_max,
                heal_share=settings.heal_share,
                forget_workers_s=settings.forget_workers_s,
            ),
            redis_url=settings.redis_url,
            clouds=of_project,
            sinks=sinks,
            tidying=[
                *(task.tidy for task in (of_stacks, *users, Memory()) if task is not None),
                *stack_notifier(settings, db),
                lifecycle_hooks(settings, db, sinks, shared_environment(settings)),
            ],
            urls=reaching(outbound, settings.vantage),
        )
        spare_the_collector()
        try:
            worker_instance.start()
        except Transient as error:
            raise Problem(f"the worker cannot start, look at --board: {in_detail(error)}") from error
        stop.wait()
        worker_instance.stop()
    return OK


def reaching(outbound: "Outbound", vantage: str = DEFAULT_VANTAGE) -> "Urls":
    """Return the worker's client for URLs of users."""
    from homeostat.convergence.engine import Urls
    from homeostat.convergence.health_checks.probes import Answer

    return Urls(
        lambda url: outbound.status(url, ASKED_S),
        lambda url, verify, s: Answer(*outbound.answer(url, s, verify_tls=verify)),
        lambda call: outbound.call(call.method, call.url, call.body, call.headers, call.timeout_s),
        vantage,
    )
