"""Additional Starlette path convertors for route patterns."""

from starlette.convertors import PathConvertor, register_url_convertor


class AnyPath(PathConvertor):
    """Starlette's `path` convertor extended to match line breaks, so that such an address still reaches its route."""

    regex = r"[\s\S]*"


ANY_PATH = "homeostat_any_path"
register_url_convertor(ANY_PATH, AnyPath())
