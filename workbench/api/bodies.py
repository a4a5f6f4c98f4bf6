"""The body of a request from a machine: whole, unpacked, and no larger than the settings allow."""

import gzip
import io
import zlib
from http import HTTPStatus

from django.conf import settings
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpRequest, UnreadablePostError
from django.utils.translation import gettext as _

_CHUNK = 1 << 16


class Refused(Exception):
    """A request that is answered with an error; the message is for whoever sent it."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


def read_body(request: HttpRequest, known_types: frozenset[str]) -> tuple[bytes, str]:
    """The unpacked body and its media type; raises Refused.

    A request without a media type is taken for the body that it has.
    """
    media_type = (request.content_type or "").lower()
    if media_type and media_type not in known_types:
        what = {"type": media_type, "known": ", ".join(sorted(known_types))}
        text = _("a body of type %(type)s is not taken; known are %(known)s")
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, text % what)
    return _unpack(_read_all(request), request.headers.get("Content-Encoding", "")), media_type


def _read_all(request: HttpRequest) -> bytes:
    most = settings.PUSH_MAX_BYTES
    if int(request.META.get("CONTENT_LENGTH") or 0) > most:
        raise _too_large()
    stream = _stream(request)
    try:
        parts, size = [], 0
        while chunk := stream.read(min(_CHUNK, most + 1 - size)):
            parts.append(chunk)
            size += len(chunk)
            if size > most:
                raise _too_large()
    except (UnreadablePostError, OSError):
        raise Refused(HTTPStatus.BAD_REQUEST, _("the connection broke off inside the body")) from None
    return b"".join(parts)


def _stream(request: HttpRequest) -> HttpRequest | io.BufferedIOBase:
    """Where the body comes from: Django has nothing of a body that comes in chunks, the server below it has."""
    is_chunked = "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "").lower()
    if is_chunked and isinstance(request, WSGIRequest) and request.environ.get("wsgi.input_terminated"):
        stream: io.BufferedIOBase = request.environ["wsgi.input"]
        return stream
    return request


def _unpack(data: bytes, encoding: str) -> bytes:
    match encoding.strip().lower():
        case "" | "identity":
            return data
        case "gzip" | "x-gzip":
            return _read_packed(gzip.GzipFile(fileobj=io.BytesIO(data)))
        case "deflate":
            return _inflate(data)
    text = _("the content encoding %(encoding)s is not taken; gzip and deflate are")
    raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, text % {"encoding": encoding[:40]})


def _read_packed(packed: gzip.GzipFile) -> bytes:
    try:
        data = packed.read(settings.PUSH_MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        raise _broken() from None
    if len(data) > settings.PUSH_MAX_BYTES:
        raise _too_large()
    return data


def _inflate(data: bytes) -> bytes:
    unpacking = zlib.decompressobj()
    try:
        unpacked = unpacking.decompress(data, settings.PUSH_MAX_BYTES + 1)
    except zlib.error:
        raise _broken() from None
    if len(unpacked) > settings.PUSH_MAX_BYTES:
        raise _too_large()
    if not unpacking.eof:
        raise _broken()
    return unpacked


def _broken() -> Refused:
    return Refused(HTTPStatus.BAD_REQUEST, _("the body can't be unpacked: it is damaged or breaks off"))


def _too_large() -> Refused:
    text = _("the body has more than %(most)d bytes; push less at once")
    return Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text % {"most": settings.PUSH_MAX_BYTES})
