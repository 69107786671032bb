"""Metrics for Prometheus: the counters of this process, and gauges read from the database.

Needs `prometheus_client`.
"""

import logging
from collections.abc import Iterator
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError

from homeostat.model.errors import Transient
from homeostat.model.node_health import Finding
from homeostat.store.database import Database
from homeostat.store.operation import health, workers

LOG = logging.getLogger(__name__)
CONTENT_TYPE = CONTENT_TYPE_LATEST


class Meters:
    """The meters of this process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.claims = self._counter("shards_claimed", "Shards that this worker has taken to work on.")
        self.passes = self._counter("passes", "Passes over a shard, by how they ended.", "outcome")
        self.steps = self._counter("steps", "Steps performed, by act and kind of thing.", "verb", "kind")
        self.healings = self._counter("healings", "Steps that bring back what a stack at rest has lost.", "kind")
        self.answers = self._counter("cloud_answers", "Answers of the cloud, one a thing.", "verb", "kind", "outcome")
        self.call_s = Histogram(
            "homeostat_cloud_call_seconds",
            "Time of calls of the cloud; each is for a batch of things.",
            ["verb", "kind"],
            registry=self.registry,
        )
        self.recoveries = self._counter(
            "recovery_actions", "Actions of health policies that have begun, those of users as `call`.", "action"
        )
        self.health_round_s = Histogram(
            "homeostat_health_round_seconds", "Time of rounds of health checks.", registry=self.registry
        )
        self.health_checks = self._counter("health_checks", "Members looked at for their health.")
        self.observations = self._counter("observations", "Things looked at.", "kind")
        self.drifts = self._counter("drifts", "Things at rest that were found to be different.")
        self.sweeps = self._counter("sweeps", "Looks for what late requests have made.")
        self.swept = self._counter("swept_things", "Things that late requests had made, removed.")
        self.delivered = self._counter("events_told", "Events delivered to event sinks.", "type")
        self.delivery_failures = self._counter("events_not_told", "Deliveries to an event sink that failed.", "type")
        self.given_up = self._counter("events_given_up", "Events that were never delivered to an event sink.", "type")

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"homeostat_{name}", meaning, labels, registry=self.registry)


METERS = Meters()


class ServiceCollector(Collector):
    """Collector of this process's meters, and of gauges read from the database at each scrape."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def collect(self) -> Iterator[Metric]:
        yield from METERS.registry.collect()
        try:
            yield from self._gauges()
        except (Transient, SQLAlchemyError) as error:
            LOG.warning("no gauges this time: %s", error)
            yield _gauge("database_up", "Does the database answer?", 0)

    def _gauges(self) -> list[Metric]:
        with self._db.read() as tx:
            now = tx.now()
            backlog = health.backlog(tx, now)
            owned = health.owned(tx, now)
            registered = workers.listed(tx)
            live = health.live_stacks(tx)
            findings = health.members_by_health(tx)
        stacks = GaugeMetricFamily("homeostat_stacks", "Stacks that are not deleted.", labels=["action", "status"])
        for state, count in sorted(live.items()):
            stacks.add_metric(state, count)
        members = GaugeMetricFamily(
            "homeostat_members_by_health", "Members for which health policies hold.", labels=["finding"]
        )
        for finding in Finding:
            members.add_metric([finding.value], findings.get(finding.value, 0))
        alive = sum(worker.is_alive(now) for worker in registered)
        by_state = GaugeMetricFamily("homeostat_workers", "Workers in the register.", labels=["state"])
        by_state.add_metric(["up"], alive)
        by_state.add_metric(["down"], len(registered) - alive)
        return [
            _gauge("database_up", "Does the database answer?", 1),
            stacks,
            members,
            by_state,
            _gauge("shards_due", "Shards that wait for a worker.", backlog.shards),
            _gauge("wakeup_lag_seconds", "How long the oldest of them has waited.", backlog.lag_s(now)),
            _gauge("shards_owned", "Shards that a worker owns.", sum(owned.values())),
            _gauge("workers_busy", "Workers that own shards.", len(owned)),
        ]


def _gauge(name: str, meaning: str, value: float) -> Metric:
    return GaugeMetricFamily(f"homeostat_{name}", meaning, value)


def exposed(db: Database) -> bytes:
    """Return all metrics in the text format of Prometheus, whose media type is CONTENT_TYPE."""
    return generate_latest(ServiceCollector(db))


def serve(db: Database, host: str, port: int) -> WSGIServer:
    """Serve `/metrics` in a new thread until the process ends; port 0 takes any free port.

    Raises:
        OSError: The port cannot be used.
    """
    server, _ = start_http_server(port, host, ServiceCollector(db))
    LOG.info("metrics at http://%s:%s/metrics", *server.server_address[:2])
    return server
