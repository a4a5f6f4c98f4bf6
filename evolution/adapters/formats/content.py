"""The content of a file as a stream that ends where it breaks, and says why; UTF-16 comes out as UTF-8."""

import codecs
import io
import sys
import zlib
from typing import Any

from django.utils.translation import gettext as _

from evolution.adapters.formats.values import escape

if sys.version_info >= (3, 14):
    import zipfile

    from compression import zstd
else:
    from backports import zstd
    from backports.zstd import zipfile

# What opening and unpacking raise on content that is damaged, encrypted or not to be had.
BROKEN = (
    zipfile.BadZipFile, zstd.ZstdError, NotImplementedError, EOFError, zlib.error, RuntimeError, OSError, ValueError
)  # fmt: skip
_BLOCK = 2**18
_HEAD = 4096


class _Guarded(io.RawIOBase):
    """Turns errors of the stream inside, and content that is longer than `limit` bytes, into its end."""

    def __init__(self, stream: Any, limit: int | None) -> None:
        # One block at a time: what came before an error is not lost with it.
        self._read_some = getattr(stream, "read1", stream.read)
        self._left = limit
        self.failure = ""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self.failure:
            return 0
        try:
            data = self._read_some(len(buffer))
        except BROKEN as error:
            self.failure = describe_failure(error)
            return 0
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0:
                self.failure = _("it unpacks to far more than such files do")
                return 0
        buffer[: len(data)] = data
        return len(data)


class _Recoded(io.RawIOBase):
    """UTF-8 of a stream in another encoding; what is wrong in it is wrong in UTF-8, too."""

    def __init__(self, inner: io.BufferedReader, encoding: str) -> None:
        self._inner = inner
        self._decode = codecs.getincrementaldecoder(encoding)(errors="surrogatepass").decode
        self._ready = b""
        self.broken = ""

    @property
    def failure(self) -> str:
        return self.broken or failure_of(self._inner)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            data = self._inner.read1(_BLOCK)
            try:
                text = self._decode(data, final=not data)
            except UnicodeError:
                self.broken = _("broken UTF-16; save it as UTF-8")
                return 0
            self._ready = text.encode("utf-8", "surrogatepass")
            if not data:
                break
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size


def guard(stream: Any, limit: int | None = None) -> io.BufferedReader:
    """A stream that never raises: it ends where the one inside breaks, or behind `limit` bytes; see `failure_of`."""
    return io.BufferedReader(_Guarded(stream, limit), _BLOCK)


def as_text(content: io.BufferedReader) -> io.BufferedReader:
    """The content without byte order mark, UTF-16 and UTF-32 as UTF-8; other encodings stay as they are."""
    head = content.peek(_HEAD)[:_HEAD]
    encoding, mark = find_encoding(head)
    content.read(mark)
    if not encoding:
        return content
    return io.BufferedReader(_Recoded(content, encoding), _BLOCK)


def failure_of(content: io.BufferedReader) -> str:
    """Why the content of `guard` or `as_text` broke off; "" where it did not, or not yet."""
    return str(getattr(content.raw, "failure", ""))


def find_encoding(head: bytes) -> tuple[str, int]:
    """The encoding that a file's beginning shows, "" for what may be UTF-8, and the length of its mark."""
    marks = (
        (codecs.BOM_UTF8, ""),
        # Before UTF-16, whose mark it begins with.
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    )
    for mark, encoding in marks:
        if head.startswith(mark):
            return encoding, len(mark)
    # ASCII, with which JSON begins and of which CSV has much, has a zero in every other byte.
    even, odd = head[0:64:2], head[1:64:2]
    if len(odd) > 1 and odd.count(0) * 4 >= len(odd) and not even.count(0):
        return "utf-16-le", 0
    if len(odd) > 1 and even.count(0) * 4 >= len(even) and not odd.count(0):
        return "utf-16-be", 0
    return "", 0


def describe_failure(error: BaseException) -> str:
    """Say what is wrong with a file, without its path."""
    text = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return escape(str(text))
