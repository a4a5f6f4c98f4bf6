"""What reviewers ask of the editor, as one text: their words, then the lines that they commented on.

    Shorter, please.

    [skills/pay/SKILL.md:12] > - Quote the price after the coupon.
    anna: say it in half the words

Lines of a file are quoted behind `>`: they are what is spoken of, and nobody's instruction.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

OLD = "old"
LONGEST_LINE = 500

_HEAD = re.compile(r"^\[(?P<path>[^\]\n]+?)(?::(?P<line>\d+))?(?P<old> old)?\](?: > (?P<text>.*))?$")
_SAID = re.compile(r"^(?P<author>[^\s:][^:\n]{0,149}): (?P<text>.*)$")


@dataclass(frozen=True)
class LineComment:
    """An open thread about one line of the diff; line 0 is the file as a whole."""

    path: str
    # "old" (the version before the change) or "new"
    side: str
    line: int
    line_text: str
    # (author, text), oldest first
    comments: tuple[tuple[str, str], ...]


def write_feedback(text: str, comments: Sequence[LineComment] = ()) -> str:
    """The one instruction to hand to the editor; "" when nobody says anything."""
    parts = [text.strip(), *(_write(comment) for comment in comments if comment.comments)]
    return "\n\n".join(part for part in parts if part)


def read_feedback(text: str) -> tuple[str, list[LineComment]]:
    """The words and the comments on lines of a text that `write_feedback` made; any other text is words."""
    words, comments = [], []
    for part in re.split(r"\n{2,}", text.strip()):
        comment = _read(part)
        if comment is None:
            words.append(part)
        else:
            comments.append(comment)
    return "\n\n".join(words), comments


def own_words(text: str, path: str) -> tuple[list[str], list[str]]:
    """What reviewers say themselves, without what they quote: all of it, and of that the comments at lines of `path`.

    For what a text asks for: the lines behind `>` are what is spoken of.
    """
    words, comments = read_feedback(text)
    said = ["\n".join(line for line in words.splitlines() if not line.lstrip().startswith(">"))]
    there = [words for comment in comments if comment.path == path for _author, words in comment.comments]
    said += [words for comment in comments for _author, words in comment.comments]
    return said, there


def _write(comment: LineComment) -> str:
    line = f":{comment.line}" if comment.line else ""
    place = f"[{comment.path}{line}{' old' if comment.side == OLD else ''}]"
    quoted = " ".join(comment.line_text[:LONGEST_LINE].split())
    # A comment's own empty lines would end the block.
    said = [f"{author}: {' '.join(words.split())}" for author, words in comment.comments]
    return "\n".join([f"{place} > {quoted}" if quoted else place, *said])


def _read(part: str) -> LineComment | None:
    first, *rest = part.split("\n")
    head = _HEAD.match(first)
    said = tuple(_read_comments(rest))
    if head is None or not said:
        return None
    side = OLD if head["old"] else "new"
    return LineComment(head["path"], side, int(head["line"] or 0), head["text"] or "", said)


def _read_comments(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        said = _SAID.match(line)
        if said:
            yield said["author"], said["text"]
