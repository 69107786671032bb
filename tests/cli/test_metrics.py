"""Metrics of a running service, as Prometheus reads them."""

import re
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.cli.conftest import Home
from tests.cli.templates import QUICK
from tests.waiting import PATIENCE_S, until


def scraped(url: str) -> Mapping[tuple[str, frozenset[str]], float]:
    """(name, values of its labels) -> value."""
    answer = httpx.get(url, timeout=PATIENCE_S)
    assert answer.headers["content-type"].startswith("text/plain; version=")
    families = text_string_to_metric_families(answer.raise_for_status().text)
    return {
        (sample.name, frozenset(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


@pytest.mark.heavy
def test_workers_and_the_api_show_metrics_on_request(home: Home, tmp_path: Path) -> None:
    template = tmp_path / "quick.yaml"
    template.write_text(QUICK)
    asked = ("--metrics", "--metrics-port", "0")
    assert home.run("serve", "--detach", "--port", "0", "--cloud", "simulated", *asked).code == 0
    assert home.run("up", str(template), "web").code == 0

    found = until(lambda: re.search(r"metrics at (http://127.0.0.1:\d+/metrics)", home.state.log.read_text()))
    worker = scraped(found[1])
    assert worker["homeostat_passes_total", frozenset({"done"})] >= 1
    assert worker["homeostat_shards_claimed_total", frozenset()] >= 1
    assert sum(value for (name, labels), value in worker.items() if name == "homeostat_steps_total") >= 1

    api = scraped(f"{home.running().url}/metrics")
    for each in (worker, api):
        assert each["homeostat_stacks", frozenset({"CREATE", "COMPLETE"})] == 1
        assert each["homeostat_database_up", frozenset()] == 1
    assert "/metrics" not in httpx.get(f"{home.running().url}/openapi.json").json()["paths"]


def test_nothing_is_shown_unasked(service: Home) -> None:
    assert httpx.get(f"{service.running().url}/metrics").status_code == 404
    assert "metrics at" not in service.state.log.read_text()


@pytest.mark.parametrize(("port", "expected"), [("", []), ("9100", ["9100", "9101"])])
def test_each_worker_has_a_port_of_its_own(port: str, expected: list[str]) -> None:
    from homeostat.cli.service import _metrics_flags
    from homeostat.cli.settings import ServiceSettings
    from homeostat.main import parser

    flags = ["--metrics-port", port] if port else []
    settings = ServiceSettings.of(parser().parse_args(["serve", "--workers", "2", *flags]))
    ports = [flag for number in range(2) for flag in _metrics_flags(settings, number) if flag != "--metrics-port"]
    assert ports == expected
