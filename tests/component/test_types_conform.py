"""All built-in types, put through the cases that are there for writers of types (`homeostat.testing`)."""

import pytest

from docs import examples
from homeostat.clouds.simulated import CloudBehaviour, SimulatedCloud
from homeostat.resources.families.retired import RetiredType
from homeostat.resources.registry import resource_type, types
from homeostat.testing import Example, Setting, check_conforms

LIVING = sorted(name for name, kind in types().items() if not isinstance(kind, RetiredType))
STRUCK = ("OS::Neutron::Net", "OS::Nova::KeyPair", "OS::Nova::Server")
"""One that is there at once, one that is told only once what it needs, and one that takes its time."""


def simulated(setting: Setting) -> SimulatedCloud:
    return SimulatedCloud(setting.now, CloudBehaviour(build_s=2.0, delete_s=1.0, idempotent=False))


@pytest.mark.parametrize("case", ["schema", "pure"])
@pytest.mark.parametrize("name", LIVING)
def test_a_type_says_nothing_that_contradicts_itself_and_answers_alike(name: str, case: str) -> None:
    kind = resource_type(name)
    check_conforms(type(kind), Example(examples.properties(kind)), cloud=simulated, case=case)


@pytest.mark.heavy
@pytest.mark.parametrize("case", ["crashes", "lost_answers"])
@pytest.mark.parametrize("name", STRUCK)
def test_nothing_leaks_whenever_a_worker_dies(name: str, case: str) -> None:
    kind = resource_type(name)
    check_conforms(type(kind), Example(examples.properties(kind)), cloud=simulated, case=case)
