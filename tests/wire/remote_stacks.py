"""Stacks that the tests of regions create in another service."""

from homeostat.clouds.heat_api import Regions, RemoteStacks
from homeostat.clouds.port import Creation

TEXT = """
heat_template_version: wallaby
parameters: {word: {type: string, default: one}}
resources: {a: {type: OS::Heat::TestResource, properties: {value: {get_param: word}}}}
outputs: {word: {value: {get_attr: [a, output]}}}
"""
P = "p"


def stacks_of(regions: Regions) -> RemoteStacks:
    return regions.of(P)


def intent(token: str, name: str, region: str = "") -> Creation:
    return Creation(token, {"name": name, "region": region, "template": TEXT, "parameters": {}})
