"""Templates that the wire tests share."""

HELLO = """
heat_template_version: 2018-08-31
description: One thing, and what it says
parameters:
  word: {type: string, default: hello}
  password: {type: string, default: swordfish, hidden: true}
resources:
  speaker:
    type: OS::Heat::TestResource
    properties: {value: {get_param: word}}
  name:
    type: OS::Heat::RandomString
    depends_on: speaker
    metadata: {colour: blue}
    properties: {length: 8}
outputs:
  said: {description: What it says, value: {get_attr: [speaker, output]}}
  name: {value: {get_resource: name}}
"""

DISK = """
heat_template_version: 2018-08-31
resources:
  disk:
    type: OS::Cinder::Volume
    deletion_policy: Snapshot
    properties: {size: 1}
"""

GROUP = """
heat_template_version: 2018-08-31
resources:
  crowd:
    type: OS::Heat::ResourceGroup
    properties:
      count: 2
      resource_def: {type: OS::Heat::TestResource, properties: {value: member %index%}}
outputs:
  said: {value: {get_attr: [crowd, output]}}
"""

SERVER = """
heat_template_version: 2018-08-31
resources:
  net: {type: OS::Neutron::Net}
  subnet: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.0.0.0/24}}
  server:
    type: OS::Nova::Server
    properties: {flavor: m1.small, image: cirros, networks: [{network: {get_resource: net}}]}
"""

FAILING = """
heat_template_version: 2018-08-31
resources:
  good: {type: OS::Heat::TestResource}
  bad: {type: OS::Heat::TestResource, depends_on: good, properties: {fail: true}}
  never: {type: OS::Heat::TestResource, depends_on: bad}
"""

ENDLESS = """
heat_template_version: 2018-08-31
resources:
  slow: {type: OS::Heat::TestResource, properties: {wait_secs: -1}}
  later: {type: OS::Heat::TestResource, depends_on: slow}
"""
