"""Shows text that people and models wrote, safely: hidden characters made visible, words marked, Markdown cleaned."""

import html
import re
import unicodedata

import nh3
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

from workbench.word_changes import Span, compare_words

# Controls, format characters (zero width, bidirectional), separators, fillers, variation selectors and tags: whatever
# can make a text read otherwise than it is. Tab, newline, space and the ideographic space are ordinary.
_HIDDEN = (
    "\u0000-\u0008\u000b-\u001f\u007f-\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f"
    "\u2028-\u202f\u205f-\u206f\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U00016fe4"
    "\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    # halves of surrogate pairs, which stand for the bytes of names that are not UTF-8, and which no page can hold
    "\ud800-\udfff"
)
# Where a text or emoji style (U+FE0E, U+FE0F) belongs: after a symbol, or inside a keycap.
_SYMBOLS = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2934\u2935\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
HIDDEN = re.compile(f"[{_HIDDEN}]|(?<![{_SYMBOLS}])[\ufe0e\ufe0f](?!\u20e3)")
ALLOWED_TAGS = {
    "a", "blockquote", "br", "code", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "strong",
    "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip

_markdown = MarkdownIt("commonmark", {"html": False}).enable("table")


def reveal(text: object) -> SafeString:
    """Escape `text`, and put the name of each hidden or bidirectional character where it stands."""
    plain = str(text)
    if HIDDEN.search(plain) is None:
        return mark_safe(html.escape(plain))  # noqa: S308  it is escaped here
    parts: list[SafeString] = []
    end = 0
    for match in HIDDEN.finditer(plain):
        parts += [escape(plain[end : match.start()]), name_character(match.group())]
        end = match.end()
    parts.append(escape(plain[end:]))
    return mark_safe("".join(parts))  # noqa: S308  every part is escaped above


def spell(text: object) -> str:
    """`text` with the code of each hidden character in its place: for attributes, which can't hold marks."""
    return HIDDEN.sub(lambda match: f"‹U+{ord(match.group()):04X}›", str(text))


def name_character(character: str) -> SafeString:
    """The code of a character that can't be seen, with its name in the title."""
    code = f"U+{ord(character):04X}"
    name = unicodedata.name(character, "control character")
    return format_html('<span class="hidden-char" title="{}">{}</span>', name, code)


def has_hidden(text: str) -> bool:
    """Whether a text holds a character that a reader would not see."""
    return HIDDEN.search(text) is not None


def mark_words(old: str, new: str) -> tuple[SafeString, SafeString]:
    """Two texts as HTML, what was taken out of the first in <del>, what was put into the second in <ins>.

    Texts that have little in common come back without marks: marking everything shows nothing.
    The time it takes grows with the length of the texts and no faster, whatever is in them.
    """
    changes = compare_words(old, new)
    if changes is None:
        return reveal(old), reveal(new)
    return _mark(old, changes.old, "del"), _mark(new, changes.new, "ins")


def _mark(text: str, spans: list[Span], tag: str) -> SafeString:
    parts: list[SafeString] = []
    end = 0
    for start, stop in spans:
        parts += [
            reveal(text[end:start]),
            format_html("<{0}>{1}</{0}>", tag, reveal(text[start:stop])),
        ]
        end = stop
    parts.append(reveal(text[end:]))
    return mark_safe("".join(parts))  # noqa: S308  every part is escaped above


def render_markdown(text: str) -> SafeString:
    """Markdown as HTML that can't run or fetch anything: no raw HTML, no images, only http(s) links."""
    html = _markdown.render(HIDDEN.sub("\ufffd", text))
    clean = nh3.clean(
        html,
        tags=ALLOWED_TAGS,
        attributes={"a": {"href"}},
        url_schemes={"http", "https"},
        link_rel="noopener nofollow",
    )
    return mark_safe(clean)  # noqa: S308  cleaned by nh3
