"""Bodies of requests: models that document and check them at once, and the messages of their faults.

A route takes its body as `body: Read[Model]`; its router (`Router`) documents the body by the same model.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar, get_args

from anyio import to_thread
from fastapi import APIRouter, Depends, Request
from fastapi.params import Depends as Dependency
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetCoreSchemaHandler,
    SkipValidation,
    ValidationError,
    WrapValidator,
    model_validator,
)
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError, core_schema

from homeostat.api.http.inputs import SMALL, Body
from homeostat.model.errors import Rejected

KEY_SHOWN = 40
"""Most characters of an unknown key that a message repeats."""
WITHOUT_PLACE, WITH_PLACE = "fault", "fault_at"
"""Types of errors with a message of their own."""
MESSAGES = {
    "bool_type": "it must be true or false, got {input!r}",
    "dict_type": "it must be a map, not {kind}",
    "list_type": "it must be a list",
    "string_too_long": "it has {length} characters; at most {max_length} are kept",
    "string_type": "it must be a text",
}
"""Type of a pydantic error -> message, which follows the place."""
M = TypeVar("M", bound="RequestBody")


class RequestBody(BaseModel):
    """A body of a request, or a map within it.

    Attributes:
        unknown: Message for unknown keys, which a model with `extra="ignore"` ignores.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")
    unknown: ClassVar[str] = "{place}: there is no such key; there are {names}"

    @model_validator(mode="before")
    @classmethod
    def _check_form(cls, value: Any) -> Any:
        # Ahead of pydantic's own check, which collects an error for each of perhaps 100,000 unknown keys.
        if not isinstance(value, Mapping):
            raise fault(f"it must be a map that may have {', '.join(cls.model_fields)}")
        cls.check_form(value)
        return value

    @classmethod
    def check_form(cls, value: Mapping[str, Any]) -> None:
        """Raise an error for unknown keys, ahead of all other checks."""
        unknown = sorted(value.keys() - cls.model_fields.keys())
        if unknown and cls.model_config.get("extra") == "forbid":
            raise PydanticCustomError(
                "unknown", "unknown key", {"keys": unknown, "text": cls.unknown, "names": ", ".join(cls.model_fields)}
            )


def fault(message: str, *, placed: bool = True) -> PydanticCustomError:
    """Return the error of a validator: a message that follows the place, or stands alone."""
    return PydanticCustomError(WITH_PLACE if placed else WITHOUT_PLACE, "{message}", {"message": message})


@dataclass(frozen=True, slots=True)
class Fault:
    """The message about a value that is missing or wrong; wrong parts of the value have messages of their own.

    Attributes:
        end: End of the message about a wrong value, with `{input}` for the value.
    """

    message: str
    end: str = ""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def check(value: Any, inner: Callable[[Any], Any]) -> Any:
            try:
                return inner(value)
            except ValidationError as error:
                if error.errors(include_url=False)[0]["loc"]:
                    raise
                raise fault(self.message + self.end.replace("{input}", repr(value))) from None

        return core_schema.no_info_wrap_validator_function(check, handler(source))


def _one_by_one(value: Any, inner: Callable[[Any], Any]) -> Any:
    if not isinstance(value, dict):
        return inner(value)
    return {name: checked for entry in value.items() for name, checked in inner(dict([entry])).items()}


ONE_BY_ONE = WrapValidator(_one_by_one)
"""Checks the entries of a map up to the first fault: pydantic collects one for each entry."""


def _map_or_text(value: Any) -> Any:
    if not isinstance(value, dict | str | None):
        raise ValueError(f"it must be a map or text, not {type(value).__name__}")
    return value


def _check_texts(value: Any) -> Any:
    for name, content in value.items() if isinstance(value, dict) else ():
        if not isinstance(content, str):
            raise ValueError(f"the content of {name} must be text")
        if "\0" in content:
            raise ValueError(f"{name} holds a NUL character; encode what is no text (base64)")
    return value


def at_most(count: int, key: str) -> BeforeValidator:
    """Return the check that a list or map under this key has no more entries: Rejected (RequestLimitExceeded)."""

    def check(value: Any) -> Any:
        if isinstance(value, dict | list) and len(value) > count:
            message = f"Request limit exceeded: {key}: there are {len(value)}, more than {count}"
            raise Rejected("RequestLimitExceeded", message)
        return value

    return BeforeValidator(check)


MapOrText = Annotated[dict[str, Any] | str | None, SkipValidation, AfterValidator(_map_or_text)]
Texts = Annotated[dict[str, str], BeforeValidator(_check_texts)]


def read(model: type[M], value: Any, place: str = "") -> M:
    """Return the checked body, or a map of it, found at this place.

    Raises:
        Rejected: HTTPBadRequest names the place of the first fault.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise Rejected("HTTPBadRequest", _message(model, error.errors(include_url=False)[0], place)) from error


def _message(model: type[BaseModel], error: ErrorDetails, place: str) -> str:
    kind, context, value = error["type"], error.get("ctx", {}), error["input"]
    place += "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"])
    place = place.removeprefix(".")
    if kind == "unknown":
        keys = [key[:KEY_SHOWN] for key in context["keys"]]
        at = f"{place}.{keys[0]}".removeprefix(".")
        return str(context["text"].format(place=at, key=keys[0], keys=", ".join(keys), names=context["names"]))
    if kind == WITHOUT_PLACE:
        return str(context["message"])
    if kind == WITH_PLACE:
        message = context["message"]
    elif kind == "missing":
        field = model.model_fields.get(str(error["loc"][-1]))
        faults = [part for part in (field.metadata if field is not None else ()) if isinstance(part, Fault)]
        if not faults:
            return f"The body lacks {place}"
        message = faults[0].message
    elif kind in MESSAGES:
        length = len(value) if isinstance(value, str) else 0
        message = MESSAGES[kind].format_map({**context, "input": value, "kind": type(value).__name__, "length": length})
    else:
        message = error["msg"].removeprefix("Value error, ")
    return f"{place}: {message}" if place else str(message)


# -- routes ------------------------------------------------------------------------------------------------------------


class _Reader:
    """The dependency of a route that reads its body."""

    def __init__(self, model: type[RequestBody]) -> None:
        self.model = model

    async def __call__(self, request: Request, body: Body) -> RequestBody:
        large = len(await request.body()) > SMALL
        return await to_thread.run_sync(read, self.model, body) if large else read(self.model, body)


if TYPE_CHECKING:
    Read = Annotated[M, "body"]
else:

    class Read:
        """The type of a route's parameter for its body: `Read[Model]`."""

        def __class_getitem__(cls, model: type[RequestBody]) -> Any:
            return Annotated[model, Depends(_Reader(model))]


class Router(APIRouter):
    """A router that documents the bodies of its routes by the models that read them."""

    def add_api_route(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        """Add a route."""
        models = [
            part.dependency.model
            for annotation in inspect.get_annotations(endpoint).values()
            for part in get_args(annotation)[1:]
            if isinstance(part, Dependency) and isinstance(part.dependency, _Reader)
        ]
        if models:
            options["openapi_extra"] = described_body(models[0])
        super().add_api_route(path, endpoint, **options)


def described_body(model: type[BaseModel]) -> dict[str, Any]:
    """Return the `openapi_extra` of a route with this body."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
