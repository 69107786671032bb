"""A Galera cluster of MariaDB servers of the tests' own, on this machine."""

import contextlib
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pymysql
from tests import mariadb
from tests.waiting import until

PROVIDERS = (Path("/usr/lib/galera/libgalera_smm.so"), Path("/usr/lib/libgalera_smm.so"))


def find_provider() -> Path | None:
    return next((path for path in PROVIDERS if path.exists()), None)


@contextlib.contextmanager
def running(program: Path, provider: Path, size: int = 3) -> Iterator[list[str]]:
    """Start a cluster; gives a SQLAlchemy URL for each node, of a user that may create databases."""
    ports = _free_ports(size * 3)
    nodes = [ports[place * 3 : place * 3 + 3] for place in range(size)]
    everyone = ",".join(f"127.0.0.1:{own[0]}" for own in nodes)
    roots: list[Path] = []
    with contextlib.ExitStack() as stack:
        for place, (own, ist, sst) in enumerate(nodes):
            root, account = stack.enter_context(mariadb.prepared(program))
            options = f"gmcast.listen_addr=tcp://127.0.0.1:{own};ist.recv_addr=127.0.0.1:{ist};gcache.size=16M"
            settings = [
                *mariadb.FAST,
                "--wsrep-on=ON",
                f"--wsrep-provider={provider}",
                f"--wsrep-provider-options={options}",
                f"--wsrep-cluster-address=gcomm://{everyone if place else ''}",
                f"--wsrep-node-address=127.0.0.1:{own}",
                f"--wsrep-sst-receive-address=127.0.0.1:{sst}",
                "--wsrep-sst-method=rsync",
                "--wsrep-slave-threads=2",
                "--binlog-format=ROW",
                "--innodb-autoinc-lock-mode=2",
            ]
            stack.enter_context(mariadb.server(program, root, account, settings))
            roots.append(root)
        for root in roots:
            until(partial(_is_ready, root, size), "the node to be one of the cluster")
        yield [mariadb.url(root) for root in roots]


def _is_ready(root: Path, size: int) -> bool:
    with contextlib.closing(pymysql.connect(unix_socket=f"{root}/socket", user="root")) as it, it.cursor() as cursor:
        cursor.execute("SHOW STATUS WHERE variable_name IN ('wsrep_ready', 'wsrep_cluster_size')")
        return dict(cursor.fetchall()) == {"wsrep_ready": "ON", "wsrep_cluster_size": str(size)}


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]
