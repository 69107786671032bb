"""The API process."""

import ipaddress
import socket
from argparse import Namespace

from homeostat.cli.errors import OK
from homeostat.cli.logs import start_logging
from homeostat.cli.operator_commands import load_plugins
from homeostat.cli.service import url_of
from homeostat.cli.settings import ServiceSettings
from homeostat.composition.access import access, ec2, makes_users, policy, trusts
from homeostat.composition.clouds import clouds, outbound_rules, shared_environment
from homeostat.composition.clustering import quotas
from homeostat.composition.database import ready_database
from homeostat.composition.garbage import spare_the_collector
from homeostat.composition.observability import traced


def api(arguments: Namespace) -> int:
    """Run an API process until SIGTERM or SIGINT."""
    from homeostat.api.app import Limits
    from homeostat.api.server import ApiSettings, run_api
    from homeostat.clock import AgreedClock, Entropy
    from homeostat.model.rates import read_rate

    settings = ServiceSettings.of(arguments)
    start_logging(settings.log_level, settings.log_json)
    load_plugins(arguments)
    listening = None if arguments.fd is None else socket.socket(fileno=arguments.fd)
    api_settings = ApiSettings(
        host=settings.host,
        port=settings.port,
        limits=Limits(
            body_bytes_max=settings.max_body,
            rate=read_rate(settings.rate_limit),
            places=settings.heavy_requests,
            hidden_tags=settings.hidden_tags,
        ),
        quotas=quotas(settings),
        metrics=settings.metrics,
        drain_file=settings.drain_file,
        fetching=outbound_rules(settings),
        shared=shared_environment(settings),
        policy=policy(settings),
        makes_users=makes_users(settings),
        ec2=ec2(settings),
        proxies=[ipaddress.ip_network(proxy, strict=False) for proxy in settings.trusted_proxies],
        public_url=_public_url(settings, listening),
    )
    with (
        ready_database(settings) as db,
        traced(settings, "api"),
        clouds(settings, db) as (_, of_project),
    ):
        of_stacks = trusts(settings, db)
        spare_the_collector()
        run_api(
            db, AgreedClock(db.agreed_now), Entropy(), access(settings), api_settings, listening, of_project, of_stacks
        )
    return OK


def _public_url(settings: ServiceSettings, listening: socket.socket | None) -> str:
    """Return the base URL of links in answers; "" without a setting, to use the URL of the client's request."""
    port = settings.port if listening is None else listening.getsockname()[1]
    # `serve` sets the public URL of its processes to its own address, for signals, unless the operator has set a URL.
    return "" if settings.public_url == url_of(settings.host, port) else settings.public_url
