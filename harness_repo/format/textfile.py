"""Turns the bytes of a file into text, tolerantly: says what is wrong with them instead of raising."""

import codecs

from harness_repo.format.problems import Problem, error, warning

MAX_FILE_BYTES = 512 * 1024

LFS_HEADER = b"version https://git-lfs.github.com/spec/"

# The longer marks first: that of UTF-32 starts as that of UTF-16 does.
_WIDE_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


def read_text(path: str, data: bytes) -> tuple[str | None, list[Problem]]:
    """The text with \\n line ends and no byte order mark, or None; and what had to be mended or refused."""
    if len(data) > MAX_FILE_BYTES:
        return None, [error(path, 0, "too_large", f"the file has more than {MAX_FILE_BYTES // 1024} KB")]
    if data.startswith(LFS_HEADER):
        hint = "fetch the content with git lfs pull, and commit it without LFS"
        return None, [
            error(path, 1, "lfs_pointer", "this is a Git LFS pointer, not the file's content", hint)
        ]
    encoding = _wide_encoding(data)
    if encoding:
        return _decode_wide(path, data, encoding)
    if b"\0" in data:
        return None, [_nul_problem(path, data[: data.index(b"\0")].count(b"\n") + 1)]
    return _decode(path, data)


def _wide_encoding(data: bytes) -> str:
    """The name of an encoding of two or four bytes per character, by its mark or by its many zeros; else ""."""
    for mark, name in _WIDE_MARKS:
        if data.startswith(mark):
            return name
    # Without a mark, in a text whose front matter is ASCII, every other byte of the first ones is zero.
    start = data[:64]
    if len(start) < 8 or b"\0" not in start:
        return ""
    even, odd = start[::2], start[1::2]
    if odd.count(0) > len(odd) * 0.7 and 0 not in even:
        return "UTF-16-LE"
    return "UTF-16-BE" if even.count(0) > len(even) * 0.7 and 0 not in odd else ""


def _decode_wide(path: str, data: bytes, encoding: str) -> tuple[str | None, list[Problem]]:
    name = encoding.removesuffix("-LE").removesuffix("-BE")
    problem = error(path, 1, "encoding", f"the file is {name}", "save it as UTF-8")
    text = data.decode(encoding, "replace")
    if "\0" in text:
        return None, [problem, _nul_problem(path, text[: text.index("\0")].count("\n") + 1)]
    return _plain(text), [problem]


def _nul_problem(path: str, line: int) -> Problem:
    return error(path, line, "nul_byte", "the file contains NUL bytes", "it is no text, or it is damaged")


def _decode(path: str, data: bytes) -> tuple[str, list[Problem]]:
    problems: list[Problem] = []
    if data.startswith(codecs.BOM_UTF8):
        problems.append(warning(path, 1, "byte_order_mark", "the file starts with a byte order mark"))
    if b"\r" in data:
        line = data[: data.index(b"\r")].count(b"\n") + 1
        problems.append(warning(path, line, "line_ends", "the file has CR line ends", "use LF"))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        line = data[: failure.start].count(b"\n") + 1
        problems.append(error(path, line, "encoding", "not valid UTF-8", "save it as UTF-8"))
        text = data.decode("utf-8-sig", "replace")
    return _plain(text), problems


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
