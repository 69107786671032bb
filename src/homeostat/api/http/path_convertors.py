"""Additional Starlette path convertors for route patterns."""

from starlette.convertors import PathConvertor, register_url_convertor


class AnyPath(PathConvertor):
    """Starlette's `path` convertor extended to match line breaks, so that such an address still reaches its route."""

    regex = r"[\s\S]*"


class SignedArn(PathConvertor):
    """The end of a signed address. No path of a project has this form."""

    regex = r"arn:openstack:heat::[\s\S]*"


ANY_PATH = "homeostat_any_path"
SIGNED_ARN = "homeostat_signed_arn"
register_url_convertor(ANY_PATH, AnyPath())
register_url_convertor(SIGNED_ARN, SignedArn())
