"""Templates for the tests of the command line."""

QUICK = """
heat_template_version: rocky
parameters:
  word: {type: string, default: first}
resources:
  text: {type: OS::Heat::Value, properties: {value: {get_param: word}}}
  server:
    type: OS::Nova::Server
    properties: {image: local, flavor: m1.tiny, metadata: {word: {get_attr: [text, value]}}}
outputs:
  word: {description: What was asked for, value: {get_attr: [text, value]}}
"""

FAILING = """
heat_template_version: rocky
resources:
  bad: {type: OS::Heat::TestResource, properties: {value: x, fail: true}}
  after: {type: OS::Heat::TestResource, depends_on: bad}
"""

STUCK = """
heat_template_version: rocky
resources:
  slow: {type: OS::Heat::TestResource, properties: {value: x, action_wait_secs: {create: -1}}}
  after: {type: OS::Heat::TestResource, depends_on: slow}
"""
