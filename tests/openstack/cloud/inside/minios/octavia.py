"""Octavia without amphorae. python -m minios.octavia is its worker.

Compute and images are Octavia's own no-op drivers. The network driver is the real one, so that VIPs, security groups
and the ports of amphorae are in Neutron; only attaching a port to an amphora is not done by Nova. The worker plays the
amphorae, too: every BEAT_S each sends a heartbeat to Octavia's own health code, which derives the operating statuses
from it. Members are up unless the file named by $MINIOS_MEMBERS says otherwise: {id or address of a member: state},
with the states of HAProxy: UP, DOWN, DRAIN, MAINT.

Faults of kind "lb" (`faults.py`) hit what is said to an amphora; op is update, start, delete, reload or build, name the
load balancer's name.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from octavia.amphorae.drivers.health import heartbeat_udp
from octavia.amphorae.drivers.noop_driver import driver as noop
from octavia.common import clients
from octavia.compute.drivers.noop_driver import driver as compute
from octavia.db import api as db_api
from octavia.network import data_models
from octavia.network.drivers.neutron import allowed_address_pairs
from oslo_log import log as logging
from sqlalchemy import text

from minios import faults

LOG = logging.getLogger(__name__)
BEAT_S = 1.0
AMPHORAE = """
SELECT a.id, a.load_balancer_id FROM amphora a JOIN load_balancer l ON l.id = a.load_balancer_id
WHERE a.status = 'ALLOCATED' AND l.provisioning_status = 'ACTIVE'
"""
LISTENERS = """
SELECT id, load_balancer_id FROM listener
WHERE enabled = 1 AND provisioning_status NOT IN ('PENDING_CREATE', 'ERROR')
"""
# HAProxy knows the pools that a listener uses.
POOLS = """
SELECT DISTINCT p.id, l.id, p.load_balancer_id, h.id IS NOT NULL AND h.enabled, p.enabled
FROM pool p
JOIN listener l ON l.load_balancer_id = p.load_balancer_id AND l.enabled = 1 AND (l.default_pool_id = p.id
    OR EXISTS (SELECT 1 FROM l7policy y WHERE y.listener_id = l.id AND y.redirect_pool_id = p.id))
LEFT JOIN health_monitor h ON h.pool_id = p.id
"""
MEMBERS = "SELECT id, pool_id, ip_address, enabled, weight FROM member"


class MiniComputeDriver(compute.NoopComputeDriver):  # type: ignore[misc]
    """Like the no-op driver, but reports to Neutron what is attached."""

    def attach_network_or_port(
        self, compute_id: str, network_id: str | None = None, ip_address: str | None = None, port_id: str | None = None
    ) -> Any:
        port = clients.NeutronAuth.get_neutron_client().update_port(port_id, device_id=compute_id)
        return data_models.Interface(compute_id=compute_id, network_id=port.network_id, port_id=port.id, fixed_ips=[])

    def detach_port(self, compute_id: str, port_id: str) -> None:
        clients.NeutronAuth.get_neutron_client().update_port(port_id, device_id="")


class MiniNetworkDriver(allowed_address_pairs.AllowedAddressPairsDriver):  # type: ignore[misc]
    def plug_port(self, amphora: Any, port: Any) -> Any:
        self.compute.attach_network_or_port(amphora.compute_id, port_id=port.id)
        return data_models.Interface(
            compute_id=amphora.compute_id, network_id=port.network_id, port_id=port.id, fixed_ips=port.fixed_ips
        )

    def unplug_network(self, compute_id: str, network_id: str) -> None:
        for interface in self.get_plugged_networks(compute_id):
            if interface.network_id == network_id:
                self.compute.detach_port(compute_id, interface.port_id)


class MiniAmphoraDriver(noop.NoopAmphoraLoadBalancerDriver):  # type: ignore[misc]
    def _check(self, op: str, loadbalancer: Any) -> None:
        faults.check("lb", op=op, name=loadbalancer.name, uuid=loadbalancer.id)

    def update(self, loadbalancer: Any) -> None:
        self._check("update", loadbalancer)
        super().update(loadbalancer)

    def update_amphora_listeners(self, loadbalancer: Any, *args: Any, **kwargs: Any) -> None:
        self._check("update", loadbalancer)
        super().update_amphora_listeners(loadbalancer, *args, **kwargs)

    def start(self, loadbalancer: Any, *args: Any, **kwargs: Any) -> None:
        self._check("start", loadbalancer)
        super().start(loadbalancer, *args, **kwargs)

    def reload(self, loadbalancer: Any, *args: Any, **kwargs: Any) -> None:
        self._check("reload", loadbalancer)
        super().reload(loadbalancer, *args, **kwargs)

    def delete(self, listener: Any) -> None:
        self._check("delete", listener.load_balancer)
        super().delete(listener)

    def post_vip_plug(self, amphora: Any, load_balancer: Any, *args: Any, **kwargs: Any) -> None:
        self._check("build", load_balancer)
        super().post_vip_plug(amphora, load_balancer, *args, **kwargs)


def heartbeats() -> Iterator[dict[str, Any]]:
    """The messages of all amphorae, as `heartbeat_udp` has them."""
    said = _said_of_members()
    with db_api.get_session() as session:
        amphorae, listeners, pools, members = (
            session.execute(text(query)).all() for query in (AMPHORAE, LISTENERS, POOLS, MEMBERS)
        )
    no_stats = {"tx": 0, "rx": 0, "conns": 0, "totconns": 0, "ereq": 0}
    for amphora, balancer in amphorae:
        found = {}
        for pool, listener, owner, monitored, enabled in pools:
            if owner == balancer and enabled:
                own = {
                    row[0]: _state(said.get(row[0], said.get(row[2])), row[3], row[4], monitored)
                    for row in members
                    if row[1] == pool
                }
                down = own and set(own.values()) == {"DOWN"}
                found[f"{pool}:{listener}"] = {"status": "DOWN" if down else "UP", "members": own}
        yield {
            "id": amphora,
            "seq": 1,
            "ver": 2,
            "recv_time": time.time(),
            "listeners": {
                listener: {"status": "OPEN", "stats": dict(no_stats)}
                for listener, owner in listeners
                if owner == balancer
            },
            "pools": found,
        }


def _said_of_members() -> dict[str, str]:
    try:
        with open(os.environ["MINIOS_MEMBERS"]) as file:
            found: dict[str, str] = json.load(file)
    except FileNotFoundError:
        return {}
    return found


def _state(said: str | None, enabled: bool, weight: int, monitored: bool) -> str:
    if not enabled:
        return "MAINT"
    if said in ("DRAIN", "MAINT"):
        return said
    if weight == 0:
        return "DRAIN"
    return (said or "UP") if monitored else "no check"


def beat() -> None:
    updater = heartbeat_udp.UpdateHealthDb()
    while True:
        time.sleep(BEAT_S)
        try:
            for health in heartbeats():
                updater.update_health(health, "192.0.2.1")
        except Exception:
            LOG.exception("heartbeats failed")


def main(arguments: Sequence[str]) -> None:
    # Only the worker needs these; importing them in the API would start too much there.
    from octavia.cmd import octavia_worker
    from octavia.controller.queue.v2 import consumer

    class BeatingConsumer(consumer.ConsumerService):  # type: ignore[misc]
        def run(self) -> None:
            threading.Thread(target=beat, daemon=True).start()
            super().run()

    consumer.ConsumerService = BeatingConsumer
    sys.argv = ["octavia-worker", *arguments]
    octavia_worker.main()


if __name__ == "__main__":
    main(sys.argv[1:])
