"""URLs of health policies that the rules of this service do not let it ask."""

from homeostat.clouds.outbound import Outbound
from homeostat.clustering.decisions.health_policy import HEALTH
from homeostat.clustering.decisions.health_urls import fixed_hosts
from homeostat.clustering.decisions.specs import Path, Spec


def unaskable_url(spec: Spec, outbound: Outbound) -> tuple[str, Path] | None:
    """Return why a policy would never get an answer, and the place in its properties; None where it may.

    Args:
        spec: Of a policy of any type, checked.
        outbound: Knows the rules.
    """
    if spec.type is not HEALTH:
        return None
    for url, path in fixed_hosts(spec.properties):
        try:
            outbound.check_now(url)
        except ValueError as error:
            return f"{url}: {error}", path
    return None
