"""Reads the bodies of HTTP answers that may not be trusted: unpacked at most once, and never beyond a length."""

import zlib
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from http.cookiejar import CookieJar, DefaultCookiePolicy

_GZIP = ("gzip", "x-gzip")
# Have zlib look for the header of gzip.
_GZIP_BITS = 16 + zlib.MAX_WBITS
# Of what is unpacked at a time.
_PIECE = 64 * 1024


class BodyRefused(Exception):
    """A body that is not read on; the text says why."""


class BodyTooLong(BodyRefused):
    """A body that is longer than it may be, as it comes or unpacked."""


async def unpack(chunks: AsyncIterable[bytes], encoding: str, most: int) -> AsyncIterator[bytes]:
    """The body that raw chunks hold, up to `most` bytes; `encoding` is the Content-Encoding, "" for none.

    Raises BodyRefused: packed other than once by gzip, not what its encoding says, or too long.
    """
    layers = [
        layer for part in encoding.split(",") if (layer := part.strip().lower()) not in ("", "identity")
    ]
    if layers and (len(layers) > 1 or layers[0] not in _GZIP):
        raise BodyRefused(f"the answer is packed as {encoding[:50]!r}; send it as it is, or packed by gzip")
    gzip = zlib.decompressobj(_GZIP_BITS) if layers else None
    left, is_begun = most, False
    async for chunk in chunks:
        is_begun = is_begun or bool(chunk)
        for piece in _pieces(gzip, chunk) if gzip else (chunk,):
            left -= len(piece)
            if left < 0:
                raise BodyTooLong(f"the answer has more than {most} bytes")
            yield piece
    if gzip is not None and not gzip.eof and is_begun:
        raise BodyRefused("the packed answer ends too early")


def no_cookies() -> CookieJar:
    """A jar that takes no cookie: what one request was told is not carried to the next."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=[]))


def _pieces(gzip: "zlib._Decompress", chunk: bytes) -> Iterator[bytes]:
    """What a chunk unfolds to, a little at a time."""
    while not gzip.eof:
        try:
            piece = gzip.decompress(chunk, _PIECE)
        except zlib.error:
            raise BodyRefused("the answer says that it is packed by gzip, and is not") from None
        yield piece
        chunk = gzip.unconsumed_tail
        # A full piece may have left more behind, even where all of the chunk was taken.
        if not chunk and len(piece) < _PIECE:
            return
