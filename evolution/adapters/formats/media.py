"""Images, audio and files of a message as a reference: where they are, or what they are; never their bytes.

    [image: https://example.com/a.png]   [image: sha256:9f86…, image/png, 52341 bytes]   [file: report.pdf]

The same bytes always give the same reference.
"""

import base64
import binascii
import hashlib
import re
from typing import Any, NamedTuple

from evolution.adapters.formats.shapes import as_text

# data:image/png;base64,iVBORw0…
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w-]+=[\w.+-]+)*;base64,([A-Za-z0-9+/_=-]+)")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
# Shorter texts of these characters may as well be a name.
_SHORTEST = 64
_MAJOR = frozenset({"image", "audio", "video"})
# A source's word for the kind of a part -> ours
_KINDS = {
    "image": "image", "image_url": "image", "input_image": "image", "output_image": "image", "media": "file",
    "audio": "audio", "input_audio": "audio", "output_audio": "audio", "audio_url": "audio",
    "video": "video", "video_url": "video", "input_video": "video",
    "file": "file", "input_file": "file", "document": "file", "blob": "file", "uri": "file", "resource": "file",
    "inline_data": "file", "inlineData": "file", "file_data": "file", "fileData": "file", "binary": "file",
    "image-url": "image", "audio-url": "audio", "video-url": "video", "document-url": "file",
    "image-data": "image", "file-data": "file", "file-url": "file", "container_upload": "file",
}  # fmt: skip
_ADDRESSES = ("url", "uri", "file_uri", "fileUri", "image_url", "audio_url", "video_url", "path")
_CONTENTS = ("data", "file_data", "base64", "bytes")
# Names under which a source gives the content itself, or where it is.
_EITHER = ("image", "audio", "video", "content")
_NAMES = ("filename", "file_name", "title", "name", "file_id", "fileId", "id")
_TYPES = ("media_type", "mime_type", "mimeType", "mediaType", "contentType", "format")


class Found(NamedTuple):
    """What a part says of its content."""

    address: str = ""
    content: str = ""
    name: str = ""
    media_type: str = ""


def refer_to(part: dict[str, Any]) -> str | None:
    """The reference for a part of a message's content; None for a part that is no medium."""
    kind = _find_kind(part)
    if kind is None:
        return None
    found = _merge(part, depth=0)
    if data := _DATA_URL.fullmatch(found.address.strip()):
        found = found._replace(address="", content=data[2], media_type=data[1] or found.media_type)
    major = as_text(part.get("modality")) or found.media_type.partition("/")[0]
    kind = major if kind == "file" and major in _MAJOR else kind
    return f"[{kind}: {_describe(found)}]"


def replace_data(text: str) -> str:
    """The text with the data URLs in it replaced by references."""
    return _DATA_URL.sub(_replace_url, text) if ";base64," in text else text


def drop_bytes(value: Any) -> Any:
    """A JSON value with the data URLs in its texts replaced by references."""
    if isinstance(value, dict):
        return {key: drop_bytes(item) for key, item in value.items()}
    if isinstance(value, list):
        return [drop_bytes(item) for item in value]
    return replace_data(value) if isinstance(value, str) else value


def _find_kind(part: dict[str, Any]) -> str | None:
    said = part.get("type")
    if isinstance(said, str):
        return _KINDS.get(said)
    # Gemini's parts have no type.
    return next((_KINDS[name] for name in part if name in _KINDS and isinstance(part[name], dict)), None)


def _merge(part: dict[str, Any], depth: int) -> Found:
    """What a part and the objects in it say, the innermost first: sources nest in different ways."""
    inner = [_merge(value, depth + 1) for value in part.values() if isinstance(value, dict) and depth < 2]
    content, address = _first(part, _CONTENTS), _first(part, _ADDRESSES)
    either = _first(part, _EITHER)
    if _is_base64(either):
        content = content or either
    else:
        address = address or either
    if content.startswith(("data:", "http:", "https:")):
        address, content = content, ""
    own = Found(address, content, _first(part, _NAMES), _first(part, _TYPES))
    return Found(*(next(filter(None, values), "") for values in zip(*inner, own, strict=True)))


def _first(part: dict[str, Any], names: tuple[str, ...]) -> str:
    return next((part[name] for name in names if isinstance(part.get(name), str) and part[name]), "")


def _is_base64(text: str) -> bool:
    return len(text) >= _SHORTEST and bool(_BASE64.fullmatch("".join(text.split())))


def _describe(found: Found) -> str:
    if found.content:
        return _describe_bytes(found.content, found.media_type)
    return replace_data(found.address) or found.name or found.media_type or "?"


def _describe_bytes(text: str, media_type: str) -> str:
    data = _decode(text)
    parts = [f"sha256:{hashlib.sha256(data).hexdigest()}", media_type, f"{len(data)} bytes"]
    return ", ".join(filter(None, parts))


def _decode(text: str) -> bytes:
    plain = "".join(text.split()).translate({ord("-"): "+", ord("_"): "/"})
    try:
        return base64.b64decode(plain.rstrip("=") + "=" * (-len(plain.rstrip("=")) % 4))
    except (binascii.Error, ValueError):
        return text.encode()


def _replace_url(match: re.Match[str]) -> str:
    media_type = match[1] or ""
    major = media_type.partition("/")[0]
    kind = major if major in _MAJOR else "file"
    return f"[{kind}: {_describe_bytes(match[2], media_type)}]"
