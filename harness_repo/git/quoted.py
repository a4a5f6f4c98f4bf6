"""Names as git writes them into a diff: in quotes, with escapes, where they hold what would confuse a reader."""

import re

_ESCAPE = re.compile(rb'\\([abfnrtv\\"]|[0-7]{3})')
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_PLAIN = {
    b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v",
    b"\\": b"\\", b'"': b'"',
}  # fmt: skip


def unquote(name: str) -> str:
    """The name itself; one that is not in quotes is returned as it is."""
    if not (len(name) > 1 and name[0] == name[-1] == '"'):
        return name
    return _ESCAPE.sub(_replace, name[1:-1].encode()).decode("utf-8", "replace")


def read_pair(text: str) -> tuple[str, str]:
    """The two names of a line `diff --git a/NAME b/NAME`, without a/ and b/; ValueError when there are not two.

    Without quotes nothing parts the names but that they are the same; of a file that was renamed, which they are
    not, other lines give them.
    """
    first = _QUOTED.match(text)
    if first:
        old, new = first[0], text[first.end() + 1 :]
    elif text.endswith('"') and (at := text.find(' "')) > 0:
        old, new = text[:at], text[at + 1 :]
    else:
        half = len(text) // 2
        old, new = text[:half], text[half + 1 :]
        if old[2:] != new[2:]:
            old, _, new = text.partition(" b/")
            new = f"b/{new}"
    old, new = unquote(old), unquote(new)
    if not (old.startswith("a/") and new.startswith("b/")):
        raise ValueError(f"not a unified diff: {text[:80]!r}")
    return old[2:], new[2:]


def _replace(found: "re.Match[bytes]") -> bytes:
    escape = found[1]
    return _PLAIN[escape] if escape in _PLAIN else bytes([int(escape, 8) & 0xFF])
