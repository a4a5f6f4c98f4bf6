"""Shows text that people and models wrote, safely: hidden characters made visible, words marked, Markdown cleaned."""

import difflib
import html
import re
import unicodedata
from collections import Counter
from itertools import accumulate

import nh3
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

# Controls, format characters (zero width, bidirectional), separators, fillers, variation selectors and tags: whatever
# can make a text read otherwise than it is. Tab, newline, space and the ideographic space are ordinary.
_HIDDEN = (
    "\u0000-\u0008\u000b-\u001f\u007f-\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f"
    "\u2028-\u202f\u205f-\u206f\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U00016fe4"
    "\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Where a text or emoji style (U+FE0E, U+FE0F) belongs: after a symbol, or inside a keycap.
_SYMBOLS = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2934\u2935\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
HIDDEN = re.compile(f"[{_HIDDEN}]|(?<![{_SYMBOLS}])[\ufe0e\ufe0f](?!\u20e3)")
# A word, a run of blanks, or a single other character: Chinese is compared character by character.
TOKEN = re.compile(r"[A-Za-z0-9_]+|\s+|.", re.DOTALL)
# Equal pairs of tokens that may be looked at for each token of two texts. Ordinary texts need a fraction of it;
# repetitive ones would take the cube of their length.
PAIRS_PER_TOKEN = 300
# Lines less alike than this have no words in common worth marking.
ALIKE = 0.35
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
        parts += [escape(plain[end : match.start()]), _name_character(match.group())]
        end = match.end()
    parts.append(escape(plain[end:]))
    return mark_safe("".join(parts))  # noqa: S308  every part is escaped above


def spell(text: object) -> str:
    """`text` with the code of each hidden character in its place: for attributes, which can't hold marks."""
    return HIDDEN.sub(lambda match: f"‹U+{ord(match.group()):04X}›", str(text))


def _name_character(character: str) -> SafeString:
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
    old_tokens, new_tokens = TOKEN.findall(old), TOKEN.findall(new)
    matcher = _BoundedMatcher(old_tokens, new_tokens)
    if matcher.ratio() < ALIKE:
        return reveal(old), reveal(new)
    left: list[tuple[str, str]] = []
    right: list[tuple[str, str]] = []
    for operation, i, i_end, j, j_end in matcher.get_opcodes():
        is_same = operation == "equal"
        left.append(("" if is_same else "del", "".join(old_tokens[i:i_end])))
        right.append(("" if is_same else "ins", "".join(new_tokens[j:j_end])))
    return _join_marked(left), _join_marked(right)


class _BoundedMatcher(difflib.SequenceMatcher[str]):
    """Finds what is equal like its parent until its work is used up; what is left then counts as different."""

    def __init__(self, old: list[str], new: list[str]) -> None:
        super().__init__(None, old, new, autojunk=False)
        self.work_left = PAIRS_PER_TOKEN * (len(old) + len(new))
        self.length = len(old)
        places = Counter(new)
        self.work_before = list(accumulate((1 + places[token] for token in old), initial=0))

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> difflib.Match:
        """The longest equal run within the two ranges; an empty one when the work is used up."""
        self.work_left -= self.work_before[self.length if ahi is None else ahi] - self.work_before[alo]
        if self.work_left < 0:
            return difflib.Match(alo, blo, 0)
        return super().find_longest_match(alo, ahi, blo, bhi)


def _join_marked(parts: list[tuple[str, str]]) -> SafeString:
    marked = [
        format_html("<{0}>{1}</{0}>", tag, reveal(text)) if tag else reveal(text)
        for tag, text in parts
        if text
    ]
    return format_html_join("", "{}", ((part,) for part in marked))


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
