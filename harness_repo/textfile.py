"""Turns the bytes of a file into text, tolerantly: says what is wrong with them instead of raising."""

from harness_repo.problems import Problem, error, warning

MAX_FILE_BYTES = 512 * 1024

LFS_HEADER = b"version https://git-lfs.github.com/spec/"


def read_text(path: str, data: bytes) -> tuple[str | None, list[Problem]]:
    """The text with \\n line ends and no byte order mark, or None; and what had to be mended or refused."""
    if len(data) > MAX_FILE_BYTES:
        return None, [error(path, 0, "too_large", f"the file has more than {MAX_FILE_BYTES // 1024} KB")]
    if data.startswith(LFS_HEADER):
        return None, [error(path, 1, "lfs_pointer", "this is a Git LFS pointer, not the file's content")]
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = data.decode("utf-16", "replace")
        return _plain(text), [error(path, 1, "encoding", "the file is UTF-16", "save it as UTF-8")]
    if b"\0" in data:
        line = data[: data.index(b"\0")].count(b"\n") + 1
        return None, [error(path, line, "nul_byte", "the file contains NUL bytes")]
    return _decode(path, data)


def _decode(path: str, data: bytes) -> tuple[str, list[Problem]]:
    problems: list[Problem] = []
    if data.startswith(b"\xef\xbb\xbf"):
        problems.append(warning(path, 1, "byte_order_mark", "the file starts with a byte order mark"))
    if b"\r" in data:
        problems.append(warning(path, 1, "line_ends", "the file has CR line ends", "use LF"))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        line = data[: failure.start].count(b"\n") + 1
        problems.append(error(path, line, "encoding", "not valid UTF-8", "save it as UTF-8"))
        text = data.decode("utf-8-sig", "replace")
    return _plain(text), problems


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
