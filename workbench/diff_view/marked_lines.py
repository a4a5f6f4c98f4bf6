"""One line as HTML: escaped, hidden characters named, words that changed marked, syntax coloured, all at once."""

from collections.abc import Sequence
from html import escape
from itertools import pairwise

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext

from workbench.highlighting import Colour
from workbench.text_marks import HIDDEN, name_character, reveal
from workbench.word_changes import Span

# Characters of a line that are shown; the rest is counted, and a click away.
LONGEST_SHOWN = 2_000
# What is shown before the first change in a line that is cut.
_BEFORE_CHANGE = 200


def render_line(
    text: str, colours: Sequence[Colour] = (), changes: Sequence[Span] = (), tag: str = ""
) -> SafeString:
    """A line without its LF; `changes` are put into elements named `tag`. A CR at its end becomes a small sign."""
    plain = text.removesuffix("\r")
    if not colours and not changes:
        body: str = reveal(plain)
    else:
        body = "".join(_render_pieces(plain, colours, changes, tag))
    end = line_end_sign() if len(plain) < len(text) else ""
    if end and any(stop == len(text) for _, stop in changes):
        end = f"<{tag}>{end}</{tag}>"
    return mark_safe(body + end)  # noqa: S308  every part is escaped where it is made


def line_end_sign() -> SafeString:
    """What stands for the CR of a line that ends in CR LF."""
    return format_html('<span class="line-end" title="{}">CR</span>', gettext("ends in CR LF"))


def _render_pieces(text: str, colours: Sequence[Colour], changes: Sequence[Span], tag: str) -> list[str]:
    hidden = [match.span() for match in HIDDEN.finditer(text)]
    spans = [*((start, end) for start, end, _ in colours), *changes, *hidden]
    edges = sorted({0, len(text), *(min(edge, len(text)) for span in spans for edge in span)})
    css = _Cover([(start, end, name) for start, end, name in colours])
    change = _Cover([(start, end, tag) for start, end in changes])
    unseen = _Cover([(start, end, "hidden") for start, end in hidden])
    pieces: list[str] = []
    is_open = False
    for start, end in pairwise(edges):
        is_changed = bool(change.at(start))
        if is_changed != is_open:
            pieces.append(f"<{tag}>" if is_changed else f"</{tag}>")
            is_open = is_changed
        shown = name_character(text[start:end]) if unseen.at(start) else escape(text[start:end])
        name = css.at(start)
        pieces.append(f'<span class="{name}">{shown}</span>' if name else shown)
    if is_open:
        pieces.append(f"</{tag}>")
    return pieces


class _Cover:
    """Which of some spans, in order and not touching, covers a place; asked from left to right."""

    def __init__(self, spans: list[tuple[int, int, str]]) -> None:
        self.spans = spans
        self.next = 0

    def at(self, place: int) -> str:
        """The name of the span over the place; empty when none is."""
        while self.next < len(self.spans) and self.spans[self.next][1] <= place:
            self.next += 1
        is_over = self.next < len(self.spans) and self.spans[self.next][0] <= place
        return self.spans[self.next][2] if is_over else ""


def choose_window(text: str, changes: Sequence[Span]) -> Span:
    """What is shown of a line: all of it, or of a very long one a part that has the first change in it."""
    if len(text) <= LONGEST_SHOWN:
        return 0, len(text)
    first = changes[0][0] if changes else 0
    start = max(0, min(first - _BEFORE_CHANGE, len(text) - LONGEST_SHOWN))
    return start, start + LONGEST_SHOWN


def cut_spans(spans: Sequence[Span], window: Span) -> list[Span]:
    """The parts of spans within a window, counted from its start."""
    first, last = window
    inside = ((max(start, first), min(end, last)) for start, end in spans)
    return [(start - first, end - first) for start, end in inside if start < end]
