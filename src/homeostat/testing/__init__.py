"""Conformance tests for resource types: all requirements of the service on a type and its cloud.

    from homeostat.testing import Example, cases, check_conforms

    @pytest.mark.parametrize("case", cases())
    def test_lamp(case: str) -> None:
        check_conforms(Lamp, Example({"watts": 40}, change={"watts": 25}), cloud=my_cloud, case=case)

A failed case raises AssertionError with the reason. Time is virtual, so nothing waits; a case takes milliseconds to
seconds. For a class with handlers, `plugin(type_name, plugin_class)` returns both the type and the cloud.
"""

from homeostat.testing.cases import Example, cases, check_conforms, plugin
from homeostat.testing.workbench import Bench, Crash, Making, Setting

__all__ = ["Bench", "Crash", "Example", "Making", "Setting", "cases", "check_conforms", "plugin"]
