"""A type with handlers. All that is not Python's own is in the imports: a plug-in for Heat changes these at most."""

from example_files import directory
from homeostat.plugins import attributes, exception, properties, resource


class Note(resource.Resource):
    """A file with a text, one text after the other."""

    PROPERTIES = (TEXT, TITLE) = ("text", "title")
    ATTRIBUTES = (LENGTH,) = ("length",)

    properties_schema = {
        TEXT: properties.Schema(properties.Schema.STRING, "What is noted.", required=True, update_allowed=True),
        TITLE: properties.Schema(properties.Schema.STRING, "The first line.", default="Note"),
    }
    attributes_schema = {
        LENGTH: attributes.Schema("Letters in the text.", type=attributes.Schema.INTEGER),
    }

    def _file(self):
        # The name is known before anything is made: what an interrupted creation has left is found again.
        return directory() / f"{self.physical_resource_name()}.txt"

    def _write(self, text):
        self._file().write_text(f"{self.properties[self.TITLE]}\n{text}")

    def handle_create(self):
        self._write(self.properties[self.TEXT])
        self.resource_id_set(self._file().name)

    def check_create_complete(self, token):
        return self._file().exists()

    def handle_update(self, json_snippet, tmpl_diff, prop_diff):
        self._write(prop_diff[self.TEXT])

    def handle_delete(self):
        self._file().unlink(missing_ok=True)

    def get_live_state(self, resource_properties):
        if not self._file().exists():
            raise exception.EntityNotFound(entity="Note", name=self.resource_id)
        return {self.TEXT: self._file().read_text().partition("\n")[2]}

    def _resolve_attribute(self, name):
        return len(self._file().read_text().partition("\n")[2]) if name == self.LENGTH else None


def resource_mapping():
    return {"Example::Note": Note}
