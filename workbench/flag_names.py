"""Flags in words for the people who review a change: what was noticed, and why one would look at it."""

from dataclasses import dataclass
from typing import Literal

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from evolution.loop.flags import Flag, FlagKind

Level = Literal["warn", "danger"]


@dataclass(frozen=True)
class FlagView:
    """A flag as it is shown; `detail` is what models and users wrote, to be escaped and revealed."""

    title: str
    explanation: str
    level: Level
    detail: str


_WORDS: dict[FlagKind, tuple[Promise, Promise]] = {
    FlagKind.HIDDEN: (_("Hidden characters"), _("Models read them, and people don't see them.")),
    FlagKind.BIDIRECTIONAL: (
        _("Characters that change the direction of writing"),
        _("What is read here may stand in another order in the file."),
    ),
    FlagKind.UNUSUAL_SPACE: (
        _("Unusual blanks"),
        _("They look like a space and are another character: what is compared with this text may not match."),
    ),
    FlagKind.MIXED_SCRIPT: (
        _("A word of letters from several scripts"),
        _("Some of its letters only look like the ones that one reads."),
    ),
    FlagKind.LOOK_ALIKE: (
        _("Looks like another name"),
        _("It is written with other characters than what it looks like."),
    ),
    FlagKind.NEW_HOST: (
        _("A new address"),
        _("Nothing of the version that this starts from names this host."),
    ),
    FlagKind.NEW_URL: (
        _("A new address at a known host"),
        _("The host is named elsewhere in the harness, this address is not."),
    ),
    FlagKind.NEW_CONTACT: (
        _("A new e-mail address or telephone number"),
        _("Nothing of the version that this starts from has it."),
    ),
    FlagKind.OVERRIDE: (
        _("Sets instructions aside"),
        _("It reads like an order to ignore other rules, as texts do that were planted in a transcript."),
    ),
    FlagKind.ROLE_CHANGE: (
        _("Gives the model another role"),
        _("It reads like an attempt to make the agent somebody else."),
    ),
    FlagKind.FAKE_TURN: (
        _("Looks like a message of the system"),
        _("It imitates the marks by which models tell who speaks."),
    ),
    FlagKind.CONCEALMENT: (
        _("Asks for silence"),
        _("It asks the model to keep something from people."),
    ),
    FlagKind.SELF_APPROVAL: (
        _("Speaks to reviewers or judges"),
        _("It says of itself that it is right, or asks for approval or a good score."),
    ),
    FlagKind.EXFILTRATION: (
        _("May send data away"),
        _("It asks to send or show what should stay inside."),
    ),
    FlagKind.COMMAND: (_("A command"), _("It asks for something to be run on a machine.")),
    FlagKind.ENCODED: (_("Encoded text"), _("People can't read it, and models can.")),
    FlagKind.COMMENT: (
        _("Text that a rendered page does not show"),
        _("The model reads it all the same."),
    ),
    FlagKind.FROM_TRANSCRIPT: (
        _("Stands in a case that the drafter was shown"),
        _("It may have been put there to be copied, or it mends that one case and no other."),
    ),
    FlagKind.CASE_FACT: (
        _("Facts of a single case"),
        _("Prices, ids and days change; a tool should say them."),
    ),
    FlagKind.OBLIGATION_REMOVED: (
        _("An obligation is gone"),
        _("What the agent had to do, or was never to do, is no longer said here."),
    ),
    FlagKind.OBLIGATION_SOFTENED: (
        _("An obligation is softer"),
        _("The new words leave more to the agent."),
    ),
    FlagKind.RULE_REMOVED: (
        _("A rule or a step is gone"),
        _("It stood here, and stands nowhere now."),
    ),
    FlagKind.RULE_CONDITIONAL: (
        _("A rule is under a condition of the template"),
        _("It stands there still, and may not be said, or only sometimes."),
    ),
    FlagKind.HOOK_REMOVED: (_("A hook is gone"), _("Nothing checks any more what it checked.")),
    FlagKind.HOOK_NARROWED: (
        _("A hook is applied less often"),
        _("Its event or its condition has changed."),
    ),
    FlagKind.HOOK_CHANGED: (
        _("A hook checks otherwise"),
        _("Whether it lets more pass can't be told by looking at it: try it."),
    ),
    FlagKind.HOOK_SOFTENED: (
        _("A hook does less about what it finds"),
        _("What was stopped or corrected may get through."),
    ),
    FlagKind.CHECK_LOOSENED: (
        _("A check lets more pass"),
        _("A pattern, figure or demand of it is gone or wider."),
    ),
    FlagKind.SCHEMA_LOOSENED: (
        _("A schema lets more pass"),
        _("What was refused as malformed is accepted now."),
    ),
    FlagKind.LIMIT_CHANGED: (
        _("A limit is wider"),
        _("A run may take longer, cost more, or be corrected less often."),
    ),
    FlagKind.MODEL_CHANGED: (
        _("Parameters of the model have changed"),
        _("They change every reply, not only those of the cases in question."),
    ),
    FlagKind.SETTING_CHANGED: (
        _("A setting of the harness has changed"),
        _("It changes how everything else is used."),
    ),
    FlagKind.SECTION_REMOVED: (
        _("A section is no longer part of the prompt"),
        _("The agent is not told any more what stands in it."),
    ),
    FlagKind.SOURCE_CHANGED: (
        _("A tool gets its results from elsewhere"),
        _("Hosts, commands and secrets are the operator's to decide."),
    ),
    FlagKind.GRANT_CHANGED: (
        _("A skill may use more tools"),
        _("Its front matter grants tools that it did not have."),
    ),
    FlagKind.TOOL_REMOVED: (_("A tool is gone"), _("Skills that call it have nothing to call.")),
    FlagKind.SKILL_REMOVED: (
        _("A skill is gone"),
        _("Questions that it was for are another skill's now, or nobody's."),
    ),
    FlagKind.DESCRIPTION_NARROWED: (
        _("A skill is described more narrowly"),
        _("The model chooses skills by these words: some of them are gone, or restricted."),
    ),
    FlagKind.UNREADABLE: (
        _("Can't be read any more"),
        _("A part of the harness that can't be read is left out of it."),
    ),
}


def name_flag(flag: Flag) -> FlagView:
    """The words for a flag, in the reader's language."""
    title, explanation = _WORDS[flag.kind]
    return FlagView(str(title), str(explanation), "danger" if flag.is_dangerous else "warn", flag.detail)
