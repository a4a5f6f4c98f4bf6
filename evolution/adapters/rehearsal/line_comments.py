"""What reviewers say of single lines of a draft: only the changes that stand there are reworked."""

import re
from collections.abc import Sequence

from evolution.adapters.rehearsal import sentences
from evolution.adapters.rehearsal.briefs import HarnessView
from evolution.adapters.rehearsal.feedback import Wish, heed
from evolution.adapters.rehearsal.sentences import Change
from evolution.prompts.feedback import LineComment, read_feedback

DROP = re.compile(
    r"删掉|删除|删去|去掉|拿掉|不需要|不要这|多余"
    r"|\b(?:remove|drop|delete|not needed|unnecessary|take (?:it|this) out)\b",
    re.IGNORECASE,
)


def heed_all(feedback: str, view: HarnessView, blamed: str, changes: Sequence[Change]) -> list[Change]:
    """The changes as reviewers want them: what they say of lines first, then their words about the whole.

    Raises NotUnderstood when one of them asks for nothing that is known.
    """
    words, comments = read_feedback(feedback)
    wanted = list(changes)
    for comment in comments:
        wanted = _heed_line(comment, view, wanted)
    return heed(Wish(words, view, blamed), wanted) if words else wanted


def _heed_line(comment: LineComment, view: HarnessView, changes: list[Change]) -> list[Change]:
    said = "\n".join(text for _author, text in comment.comments)
    mine = [change for change in changes if _is_about(comment, change)]
    if not mine:
        # Of a line that was there before, or in words that are not known here: it is a wish like any other.
        return heed(Wish(said, view, comment.path), changes)
    is_dropped = DROP.search(said) and not sentences.quoted(said)
    reworked = [] if is_dropped else heed(Wish(said, view, comment.path), mine)
    at = changes.index(mine[0])
    rest = [change for change in changes if change not in mine]
    return list(dict.fromkeys([*rest[:at], *reworked, *rest[at:]]))


def _is_about(comment: LineComment, change: Change) -> bool:
    """Whether the change is what stands on the line, or anywhere in the file where that is spoken of."""
    if change.path != comment.path:
        return False
    if not comment.line:
        return True
    told = [change.text, *sentences.quoted(change.text)] if change.what == "hook" else [change.text]
    return any(text in comment.line_text for text in told)
