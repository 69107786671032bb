"""Types as declarations: a schema, and what the planner may ask. Nothing here touches a file."""

from homeostat.kinds.base import Statuses
from homeostat.resources.base import ResourceType
from homeostat.resources.schema import Attribute, ValueType, length, text


class File(ResourceType):
    name = "Example::File"
    kind = "example_file"
    description = "A file with a text."
    properties = {
        "name": text("Name of the file.", constraints=(length(1, 100),)),
        "content": text("What is in it.", default="", update=True),
    }
    attributes = {
        "path": Attribute("Where it is."),
        "size": Attribute("Bytes in it.", ValueType.INTEGER, live=True),
    }
    statuses = Statuses(ready=frozenset({"written"}))


TYPES = [File]
