"""Search-and-replace blocks on one text: what is searched must stand there once, white space at line ends apart.

Nothing is guessed: a block that does not fit is refused with what is nearest, so that the model can correct it.
"""

import difflib
from collections.abc import Iterator, Sequence

from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field

# Of a refusal: lines around the nearest one, and of how long a line.
AROUND = 2
LONGEST_SHOWN = 160
# Less alike than this, no line is near (0-1, difflib's ratio).
NEAR = 0.45
MOST_COMPARED = 4_000
# Of a block, in characters.
LONGEST_PASSAGE = 100_000


class EditBlock(BaseModel):
    """One passage in place of another."""

    model_config = ConfigDict(extra="forbid")

    search: str = Field(
        min_length=1,
        max_length=LONGEST_PASSAGE,
        description="passage of the file, verbatim and in it only once",
    )
    replace: str = Field(
        max_length=LONGEST_PASSAGE, description="what stands there instead; empty to take it out"
    )


class BadEdit(ValueError):
    """An edit that cannot be applied to the files; the message says why."""


def replace_blocks(text: str, blocks: Sequence[EditBlock]) -> str:
    """The text after the blocks, each applied to what the one before it left; BadEdit names all that don't fit."""
    faults = []
    for number, block in enumerate(blocks, 1):
        try:
            text = _replace(text, block)
        except BadEdit as failure:
            faults.append(_("block %(number)d: %(problem)s") % {"number": number, "problem": failure})
    if faults:
        raise BadEdit("\n".join(faults))
    return text


def line_end(text: str) -> str:
    """The line end that most lines of a text have."""
    windows = text.count("\r\n")
    return "\r\n" if windows * 2 > text.count("\n") else "\n"


def with_line_end(text: str, end: str) -> str:
    """The text with this line end everywhere."""
    return text.replace("\r\n", "\n").replace("\n", end)


def _replace(text: str, block: EditBlock) -> str:
    end = line_end(text)
    for search in dict.fromkeys((block.search, with_line_end(block.search, end))):
        places = list(_places(text, search))
        if places:
            _check_once(text, places)
            return _put(text, places[0], search, with_line_end(block.replace, end))
    return _replace_lines(text, block, end)


def _places(text: str, search: str) -> Iterator[int]:
    """Where the passage begins, overlapping ones too: of these, none is the one that was meant."""
    at = text.find(search)
    while at >= 0:
        yield at
        at = text.find(search, at + 1)


def _check_once(text: str, places: Sequence[int]) -> None:
    if len(places) > 1:
        numbers = ", ".join(str(text.count("\n", 0, place) + 1) for place in places[:8])
        raise BadEdit(
            _("the search text is there %(count)d times (lines %(numbers)s): take more lines around it")
            % {"count": len(places), "numbers": numbers}
        )


def _put(text: str, at: int, search: str, replacement: str) -> str:
    is_lines = search.endswith("\n") and (at == 0 or text[at - 1] == "\n")
    if is_lines and replacement and not replacement.endswith("\n"):
        # Whole lines were searched; the next one is not to be joined to what replaces them.
        replacement += line_end(text)
    return text[:at] + replacement + text[at + len(search) :]


def _replace_lines(text: str, block: EditBlock, end: str) -> str:
    """As `_replace`, for whole lines that differ in the white space at their ends."""
    lines = text.splitlines(keepends=True)
    bare = [line.rstrip() for line in lines]
    wanted = [line.rstrip() for line in block.search.strip("\r\n").splitlines()]
    if not any(wanted):
        raise BadEdit(_("the search text is only white space"))
    size = len(wanted)
    found = [at for at in range(len(bare) - size + 1) if bare[at : at + size] == wanted]
    if not found:
        raise BadEdit(_not_there(lines, wanted))
    _check_once(text, [len("".join(lines[:at])) for at in found])
    replacement = with_line_end(block.replace.strip("\r\n"), end)
    after = lines[found[0] + size :]
    if replacement and (after or lines[-1].endswith("\n")):
        replacement += end
    return "".join([*lines[: found[0]], replacement, *after])


def _not_there(lines: Sequence[str], wanted: Sequence[str]) -> str:
    near = _nearest(lines, next(line for line in wanted if line.strip()))
    if near is None:
        return _("the search text is not in the file, and nothing like it")
    shown = range(max(0, near - AROUND), min(len(lines), near + len(wanted) + AROUND))
    quoted = "\n".join(f"{at + 1}: {lines[at].rstrip()[:LONGEST_SHOWN]}" for at in list(shown)[:12])
    return _("the search text is not in the file; nearest to it is\n%(lines)s") % {"lines": quoted}


def _nearest(lines: Sequence[str], wanted: str) -> int | None:
    """Index of the line most like the wanted one; None when there is none like it."""
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted.strip()[:LONGEST_SHOWN])
    best, likeness = None, NEAR
    for at, line in enumerate(lines[:MOST_COMPARED]):
        matcher.set_seq1(line.strip()[:LONGEST_SHOWN])
        if matcher.real_quick_ratio() > likeness and matcher.quick_ratio() > likeness:
            ratio = matcher.ratio()
            if ratio > likeness:
                best, likeness = at, ratio
    return best
