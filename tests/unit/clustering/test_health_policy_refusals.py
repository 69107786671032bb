"""What is refused of health policies, with the place and what would fit."""

from typing import Any

import pytest
from tests.unit.clustering.test_health_policy import EVENTS, STATUS, refused, spec, url, without


@pytest.mark.shows("HS6", "HS37")
@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (spec(version="1.3"), "404 ResourceNotFound: The policy_type 'senlin.policy.health-1.3' could not be found."),
        (without("detection"), "400 ESchema: Required spec item 'detection' not provided (at properties)"),
        (without("recovery"), "400 ESchema: Required spec item 'recovery' not provided (at properties)"),
        (
            without("detection", "detection_modes"),
            "400 ESchema: Required spec item 'detection_modes' not provided (at properties.detection)",
        ),
        (
            spec([{}]),
            "400 ESchema: Required spec item 'type' not provided (at properties.detection.detection_modes[0])",
        ),
        (
            spec([{"type": "VM"}]),
            "400 ESchema: 'VM' must be one of the allowed values: LIFECYCLE_EVENTS, NODE_STATUS_P",
        ),
        (spec(["x"]), "400 ESchema: 'x' is not a Map (at properties.detection.detection_modes[0])"),
        (
            spec([url(poll_url_typo=1)]),
            "400 ESchema: Unrecognizable spec item 'poll_url_typo' (at properties.detection",
        ),
        (spec([{"type": "NODE_STATUS_POLL_URL"}]), "400 InvalidSpec: NODE_STATUS_POLL_URL needs a poll_url (at "),
        (
            spec([url("")]),
            "400 InvalidSpec: NODE_STATUS_POLL_URL needs a poll_url (at properties.detection.detection_mo",
        ),
        (
            spec([url("ftp://x/")]),
            "400 InvalidSpec: 'ftp://x/' is not a URL that can be asked: its scheme must be http ",
        ),
        (spec([url("http:///x")]), "400 InvalidSpec: 'http:///x' is not a URL that can be asked: it names no host"),
        (spec([url("http://x:99999/")]), "400 InvalidSpec: 'http://x:99999/' is not a URL that can be asked: "),
        (spec([url("http://x:0/")]), "400 InvalidSpec: 'http://x:0/' is not a URL that can be asked: its port is 0"),
        (spec([url("http://x/a b")]), "400 InvalidSpec: 'http://x/a b' is not a URL that can be asked: it has a blank"),
        (spec([url("http://[x/")]), "400 InvalidSpec: 'http://[x/' is not a URL that can be asked: "),
        (
            spec([url("http://{name}/")]),
            "400 InvalidSpec: There is no placeholder {name}; there is {nodename}, {nodeid",
        ),
        (spec([url("http://{{ node.size }}/")]), "400 InvalidSpec: There is no placeholder {{ node.size }}; there is "),
        (
            spec([url(poll_url_healthy_response="(")]),
            "400 InvalidSpec: poll_url_healthy_response is no regular express",
        ),
        (
            spec([url(poll_url_healthy_response="a{99999}{99999}")]),
            "400 InvalidSpec: poll_url_healthy_response is no r",
        ),
        (spec([url(poll_url_retry_limit=-1)]), "400 ESchema: -1 is out of range"),
        (spec([url(poll_url_retry_interval="x")]), "400 ESchema: The value 'x' is not a valid Integer"),
        (
            spec([url(poll_url_conn_error_as_unhealty=True, poll_url_conn_error_as_unhealthy=False)]),
            "400 InvalidSpec: poll_url_conn_error_as_unhealty is a misspelling of poll_url_conn_error_as_unhealthy; ",
        ),
        (spec([STATUS, STATUS]), "400 InvalidSpec: Duplicate detection modes are not allowed in health policy: NODE_S"),
        (spec([url(), STATUS, url()]), "400 InvalidSpec: Duplicate detection modes are not allowed in health policy: "),
        (spec(detection={"type": "LIFECYCLE_EVENTS"}), "400 InvalidSpec: type is the former form of detection_modes; "),
        (spec(detection={"interval": "abc"}), "400 ESchema: The value 'abc' is not a valid Integer (at properties.det"),
        (spec(detection={"node_update_timeout": -5}), "400 ESchema: -5 is out of range"),
        (spec(detection={"node_update_timeout": 10**30}), "400 ESchema: 1000000000000000000000000000000 is out of ran"),
        (
            spec(detection={"recovery_conditional": "SOME"}),
            "400 ESchema: 'SOME' must be one of the allowed values: ALL_FAILED, ANY_FAILED (at properties.det",
        ),
        (spec(detection={"quorum": 2}), "400 InvalidSpec: quorum is 2, but there are 1 modes that poll (at "),
        (spec([EVENTS], detection={"quorum": 1}), "400 InvalidSpec: quorum is 1, but there are 0 modes that poll (at "),
        (
            spec(detection={"quorum": 1, "recovery_conditional": "ANY_FAILED"}),
            "400 InvalidSpec: quorum and recovery_conditional say the same thing; leave one of them out",
        ),
        (
            spec(actions=[{"name": "wf"}]),
            "400 InvalidSpec: 'wf' must be one of the allowed values: REBOOT, REBUILD, RECREATE, EVACUATE; another",
        ),
        (spec(actions=[{}]), "400 ESchema: Required spec item 'name' not provided (at properties.recovery.actions[0])"),
        (spec(actions=[{"name": "x", "type": "SHELL"}]), "400 ESchema: 'SHELL' must be one of the allowed values: MI"),
        (
            spec(actions=[{"name": "REBOOT", "params": {"type": "MAYBE"}}]),
            "400 ESchema: 'MAYBE' must be one of the allowed values: SOFT, HARD (at properties.recovery.act",
        ),
        (spec(actions=[{"name": "x", "type": "WEBHOOK"}]), "400 ESchema: Required spec item 'url' not provided (at "),
        (
            spec(actions=[{"name": "x", "type": "WEBHOOK", "params": {"url": "file:///etc"}}]),
            "400 InvalidSpec: 'file:///etc' is not a URL that can be asked: its scheme must be http or https (at ",
        ),
        (
            spec(actions=[{"name": "x", "type": "WEBHOOK", "params": {"url": "http://x/{who}"}}]),
            "400 InvalidSpec: There is no placeholder {who}; there is ",
        ),
        (
            spec(
                actions=[{"name": "x", "type": "WEBHOOK", "params": {"url": "http://x", "headers": {"A": "b\r\nC: d"}}}]
            ),
            "400 InvalidSpec: A header has a name of letters, digits and -, and one line of ASCII characters (at ",
        ),
        (
            spec(actions=[{"name": "x", "type": "WEBHOOK", "params": {"url": "http://x", "headers": {"hOst": "y"}}}]),
            "400 InvalidSpec: The header hOst is set by this service; leave it out (at ",
        ),
        (spec(actions=[{"name": "x", "type": "MISTRAL_WORKFLOW", "timeout": 0}]), "400 ESchema: 0 is out of range"),
        (spec(actions=[{"name": "REBOOT"}] * 17), "400 InvalidSpec: There are 17; at most 16 are possible (at prop"),
        (spec(fencing=["POWER"]), "400 ESchema: 'POWER' must be one of the allowed values: COMPUTE, NETWORK, STORAGE"),
        (spec(mode="maybe"), "400 ESchema: 'maybe' must be one of the allowed values: observe, propose, automatic"),
        (spec(max_unhealthy="most"), "400 InvalidSpec: 'most' is neither a count nor a share such as 40%"),
        (spec(max_unhealthy="1000000"), "400 InvalidSpec: '1000000' is neither a count nor a share such as 40%"),
        (spec(max_unhealthy="-1"), "400 InvalidSpec: '-1' is neither a count nor a share such as 40%"),
        (spec(max_unhealthy="0%"), "400 InvalidSpec: A share lies between 1% and 100%"),
        (spec(max_unhealthy="101%"), "400 InvalidSpec: A share lies between 1% and 100%"),
        (spec(max_unhealthy="²"), "400 InvalidSpec: '²' is neither a count nor a share such as 40%"),
        (
            spec(preserve=["mood"]),
            "400 ESchema: 'mood' must be one of the allowed values: name, ports, addresses, volu",
        ),
        (spec(node_delete_timeout=-1), "400 ESchema: -1 is out of range"),
        (
            spec(preserve=["ports", "addresses"], quarantine=True),
            "400 InvalidSpec: A node in quarantine keeps its addresses, ports; leave quarantine or them out",
        ),
        (
            spec(detection={"vantage_points": [{"name": "a"}, {"name": "a", "weight": 2}]}),
            "400 InvalidSpec: Each place is named once; give it a weight instead",
        ),
        (
            spec(detection={"vantage_points": [{"name": "a"}, {"name": "b", "weight": 2}], "vantage_quorum": 4}),
            "400 InvalidSpec: vantage_quorum is 4, but all places together weigh 3",
        ),
        (
            spec(detection={"vantage_points": [{"name": f"a{number}"} for number in range(10)]}),
            "400 InvalidSpec: There are 10; at most 9 are possible",
        ),
        (spec(detection={"vantage_points": [{"name": "a b"}]}), "400 ESchema: "),
        (spec(detection={"vantage_points": [{"name": "a", "weight": 101}]}), "400 ESchema: "),
    ],
)
def test_these_are_refused_as_errors_of_the_caller(sent: Any, message: str) -> None:
    assert refused(sent).startswith(message)
