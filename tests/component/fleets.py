"""Groups of instances whose members signal how they are."""

from typing import Any

from homeostat.clouds.simulated import CloudBehaviour
from homeostat.services.pipeline.request import StackRequest
from tests.component.running import PROJECT, Service

AWS, HEAT = "AWS::AutoScaling::AutoScalingGroup", "OS::Heat::InstanceGroup"
SECTIONS = {AWS: "AutoScalingRollingUpdate", HEAT: "RollingUpdate"}
WAITS = {"WaitOnResourceSignals": True, "PauseTime": "PT2M"}


def cfn(
    image: str, size: int, kind: str = AWS, creation: Any = None, grows: Any = None, limit: Any = None, **policy: Any
) -> dict[str, Any]:
    """A template with a group of so many servers of this image.

    grows — how a scaling policy names it; limit — its `max_unavailable`.
    """
    sizes = {"Size": size} if kind == HEAT else {"MinSize": size, "MaxSize": 10}
    group: dict[str, Any] = {
        "Type": kind,
        "Properties": {"AvailabilityZones": ["nova"], "LaunchConfigurationName": {"Ref": "launch"}, **sizes},
        "UpdatePolicy": {SECTIONS[kind]: {**WAITS, **policy}, **({"max_unavailable": limit} if limit else {})},
    }
    if creation is not None:
        group["CreationPolicy"] = creation
    launch = {"ImageId": image, "InstanceType": "small"}
    resources: dict[str, Any] = {
        "launch": {"Type": "AWS::AutoScaling::LaunchConfiguration", "Properties": launch},
        "group": group,
    }
    if kind == AWS:
        steps = {"AdjustmentType": "ChangeInCapacity", "ScalingAdjustment": 1, "Cooldown": 0}
        grow = {"AutoScalingGroupName": grows or {"Ref": "group"}, **steps}
        resources["grow"] = {"Type": "AWS::AutoScaling::ScalingPolicy", "Properties": grow}
    return {"AWSTemplateFormatVersion": "2010-09-09", "Resources": resources}


class Fleet(Service):
    """A service with one group; its servers take a second to be built."""

    def __init__(self, size: int = 3, kind: str = AWS, creation: Any = None, rollback: bool = False, **policy: Any):
        super().__init__(CloudBehaviour(build_s=1.0))
        self.more: dict[str, Any] = {"size": size, "kind": kind, "creation": creation, **policy}
        request = StackRequest(cfn("one", **self.more), disable_rollback=not rollback)
        self.id = self.stack_service.create(PROJECT, None, "web", request)
        self.live(10)

    def change(self, image: str, **more: Any) -> None:
        """Another image; what can be done within ten seconds is done."""
        self.more |= more
        self.stack_service.update(self.id, StackRequest(cfn(image, **self.more)))
        self.live(10)

    @property
    def status(self) -> str:
        return self.state(self.id)

    @property
    def reason(self) -> str:
        return str(self.row(self.id, "group").reason)

    def members(self) -> dict[int, Any]:
        """Rows of the members that stay, by number."""
        rows = [each for each in self.rows(self.child().id) if each.action != "DELETE" and each.replaced_by is None]
        return {int(each.name): each for each in rows}

    def images(self) -> str:
        """The first letter of the image of each member, in the order of their numbers."""
        found = sorted(self.members().items())
        return "".join(each.properties["ImageId"][0] for _, each in found)

    def handle(self, number: int) -> str:
        return str(self.members()[number].handle)

    def say(self, number: int, status: str = "SUCCESS", said: str = "") -> None:
        self.report_member(self.id, "group", self.handle(number), status, said)
        self.live(10)


def creation(count: Any = 2, timeout: str = "PT10M", percent: Any = None) -> dict[str, Any]:
    share = {} if percent is None else {"AutoScalingCreationPolicy": {"MinSuccessfulInstancesPercent": percent}}
    return {"ResourceSignal": {"Count": count, "Timeout": timeout}, **share}
