"""Multi-part MIME documents, as cloud-init reads them. Pure: the boundary is a hash of the parts, not random."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from email.message import Message
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.parser import Parser


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a document.

    Attributes:
        subtype: Content type without `text/`.
        filename: File name, or "".
    """

    content: str
    subtype: str = "plain"
    filename: str = ""


def multipart(parts: Sequence[Part]) -> str:
    """Return one document of these parts, in their order."""
    seed = "\0".join(text for part in parts for text in (part.filename, part.subtype, part.content))
    document = MIMEMultipart(boundary=f"==============={hashlib.sha256(seed.encode()).hexdigest()[:32]}==")
    for part in parts:
        document.attach(_message(part))
    return document.as_string()


def _message(part: Part) -> Message:
    is_ascii = part.content.isascii()
    message = MIMEText(part.content, part.subtype or "plain", "us-ascii" if is_ascii else "utf-8")
    if part.filename:
        message.add_header("Content-Disposition", "attachment", filename=part.filename)
    return message


def is_mime(text: str) -> bool:
    """Return whether a text begins like a MIME document."""
    return text[:64].lower().startswith(("content-type:", "mime-version:"))


def split(text: str) -> list[Part] | None:
    """Return the parts of a multi-part document, nested documents flattened in place; None for any other text."""
    if not is_mime(text):
        return None
    document = Parser().parsestr(text)
    if not document.is_multipart():
        return None
    return [_part(message) for message in document.walk() if not message.is_multipart()]


def _part(message: Message) -> Part:
    payload = message.get_payload(decode=True)
    raw = payload if isinstance(payload, bytes) else b""
    charset = message.get_content_charset() or "utf-8"
    try:
        content = raw.decode(charset, errors="replace")
    except LookupError:
        content = raw.decode(errors="replace")
    return Part(content, message.get_content_subtype(), message.get_filename() or "")


SNIFFED = {
    "#!": "x-shellscript",
    "#cloud-config": "cloud-config",
    "#cloud-boothook": "cloud-boothook",
    "#part-handler": "part-handler",
    "#include": "x-include-url",
}
"""First characters of a plain-text part -> the subtype that cloud-init infers."""


def subtype_of(part: Part) -> str:
    """Return the subtype of a part: the declared one, or for plain text the subtype inferred from its first line."""
    if part.subtype not in ("plain", ""):
        return part.subtype
    subtypes = [subtype for start, subtype in SNIFFED.items() if part.content.startswith(start)]
    return subtypes[0] if subtypes else "plain"
