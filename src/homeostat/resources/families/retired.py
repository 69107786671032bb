"""Types of discontinued services. Their error messages recommend replacements."""

from collections.abc import Iterator
from typing import Any

from homeostat.model.errors import Rejected
from homeostat.resources.base import Props, ResourceType
from homeostat.resources.support import hidden


class RetiredType(ResourceType):
    """A type that is refused in every template; its support status recommends a replacement."""

    open_schema = True

    def check(self, provided: Props, path: tuple[str | int, ...] = ()) -> dict[str, Any]:
        """Refuse the resource.

        Raises:
            Rejected: Always.
        """
        message = f"{self.name} has been retired and cannot be made any more. {self.support.message}"
        raise Rejected("StackValidationFailed", message, path=path)


NOTHING = "No service takes its place: leave it out, or map it to OS::Heat::None in the environment."
RETIRED: dict[str, tuple[str, str]] = {
    "AWS::CloudWatch::Alarm": ("", "Use an alarm of OS::Aodh instead."),
    "AWS::RDS::DBInstance": ("", "Use OS::Trove::Instance instead."),
    "OS::Designate::Domain": ("10.0.0", "Use OS::Designate::Zone instead."),
    "OS::Designate::Record": ("10.0.0", "Use OS::Designate::RecordSet instead."),
    "OS::Glance::Image": ("22.0.0", "Use OS::Glance::WebImage instead."),
    "OS::Magnum::Bay": ("11.0.0", "Use OS::Magnum::Cluster instead."),
    "OS::Magnum::BayModel": ("11.0.0", "Use OS::Magnum::ClusterTemplate instead."),
    "OS::Monasca::AlarmDefinition": ("25.0.0", "Use an alarm of OS::Aodh instead."),
    "OS::Monasca::Notification": ("25.0.0", "Use the actions of an alarm of OS::Aodh instead."),
    **{
        f"OS::Sahara::{name}": ("23.0.0", NOTHING)
        for name in (
            *("Cluster", "ClusterTemplate", "DataSource", "ImageRegistry", "Job", "JobBinary", "NodeGroupTemplate"),
        )
    },
    "OS::Vitrage::Template": ("27.0.0", NOTHING),
}
"""Type -> (release of Heat that removed it, recommended replacement)."""


def _types() -> Iterator[type[ResourceType]]:
    for name, (version, instead) in RETIRED.items():
        words = {"name": name, "description": f"Retired. {instead}", "support": hidden(version, instead)}
        yield type(name.rpartition("::")[2], (RetiredType,), words)


TYPES: list[type[ResourceType]] = list(_types())
