"""What a flag is: something in a change that a reviewer must not overlook, and the line beside which to say so."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Side = Literal["old", "new"]


class FlagKind(StrEnum):
    """What was noticed; the words for people are in workbench/flag_names."""

    # Characters
    HIDDEN = "hidden"
    BIDIRECTIONAL = "bidirectional"
    UNUSUAL_SPACE = "unusual_space"
    MIXED_SCRIPT = "mixed_script"
    LOOK_ALIKE = "look_alike"

    # Addresses that the base does not have
    NEW_HOST = "new_host"
    NEW_URL = "new_url"
    NEW_CONTACT = "new_contact"

    # Text that looks as if it were meant for a model, or a reviewer, and not by whoever runs the agent
    OVERRIDE = "override"
    ROLE_CHANGE = "role_change"
    FAKE_TURN = "fake_turn"
    CONCEALMENT = "concealment"
    SELF_APPROVAL = "self_approval"
    EXFILTRATION = "exfiltration"
    COMMAND = "command"
    ENCODED = "encoded"
    COMMENT = "comment"

    # Text that stands in the transcripts which the drafter was shown
    FROM_TRANSCRIPT = "from_transcript"
    CASE_FACT = "case_fact"

    # What the harness demanded and no longer does, or less
    OBLIGATION_REMOVED = "obligation_removed"
    OBLIGATION_SOFTENED = "obligation_softened"
    RULE_REMOVED = "rule_removed"
    RULE_CONDITIONAL = "rule_conditional"
    HOOK_REMOVED = "hook_removed"
    HOOK_NARROWED = "hook_narrowed"
    HOOK_CHANGED = "hook_changed"
    HOOK_SOFTENED = "hook_softened"
    CHECK_LOOSENED = "check_loosened"
    SCHEMA_LOOSENED = "schema_loosened"
    LIMIT_CHANGED = "limit_changed"
    MODEL_CHANGED = "model_changed"
    SETTING_CHANGED = "setting_changed"
    SECTION_REMOVED = "section_removed"
    SOURCE_CHANGED = "source_changed"
    GRANT_CHANGED = "grant_changed"
    TOOL_REMOVED = "tool_removed"
    SKILL_REMOVED = "skill_removed"
    DESCRIPTION_NARROWED = "description_narrowed"
    UNREADABLE = "unreadable"


# What is worth a look only; every other kind may do harm.
_MILD = frozenset(
    {
        FlagKind.UNUSUAL_SPACE,
        FlagKind.NEW_URL,
        FlagKind.NEW_CONTACT,
        FlagKind.COMMENT,
        FlagKind.FROM_TRANSCRIPT,
        FlagKind.CASE_FACT,
        FlagKind.RULE_REMOVED,
        FlagKind.HOOK_CHANGED,
        FlagKind.MODEL_CHANGED,
        FlagKind.TOOL_REMOVED,
        FlagKind.SKILL_REMOVED,
        FlagKind.DESCRIPTION_NARROWED,
    }
)


@dataclass(frozen=True, order=True)
class Flag:
    """One thing to look at."""

    # of the side's version
    path: str
    side: Side
    # 1-based; 0 for the file as a whole
    line: int
    kind: FlagKind
    # What it is, as short as it can be said without words of any language: the characters, the address, the passage,
    # "old → new". What models and users wrote stands in it as they wrote it: show it escaped.
    detail: str = ""

    @property
    def is_dangerous(self) -> bool:
        """Whether it may do harm, and not only be worth a look."""
        return self.kind not in _MILD
