"""Parts of addresses: how routes say what they match, in words of our own beside those of Starlette."""

from starlette.convertors import PathConvertor, register_url_convertor


class AnyPath(PathConvertor):
    """Like `path`, with line ends too: nothing else would answer there."""

    regex = r"[\s\S]*"


ANY_PATH = "homeostat_any_path"
register_url_convertor(ANY_PATH, AnyPath())
