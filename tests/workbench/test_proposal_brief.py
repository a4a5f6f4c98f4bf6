"""What stands above the diff of a proposal: nothing twice, and flags as counts."""

from evolution.loop.flags import Flag, FlagKind
from workbench.flag_names import name_flag
from workbench.proposal_brief import count_by_kind, leave_out
from workbench.review_flags import FlagAtLine
from workbench.review_places import LinkedFlag


def flag(kind: FlagKind, line: int, anchor: str) -> LinkedFlag:
    found = Flag("prompts/role.md", "new", line, kind)
    return LinkedFlag(FlagAtLine(found, name_flag(found)), anchor)


def test_a_summary_is_told_without_the_hypothesis_above_it() -> None:
    assert leave_out("No rule says so. Changes: a rule.", "No rule  says\nso.") == "Changes: a rule."
    assert leave_out("First. No rule says so.", "No rule says so.") == "First."
    assert leave_out("No rule says so.", "No rule says so.") == ""
    assert leave_out("Something else.", "No rule says so.") == "Something else."
    assert leave_out("Something else.", "") == "Something else."


def test_flags_that_say_the_same_are_counted_and_lead_to_the_first_row() -> None:
    flags = [
        flag(FlagKind.NEW_HOST, 1, ""),
        flag(FlagKind.HIDDEN, 2, "1-new-2"),
        flag(FlagKind.NEW_HOST, 3, "1-new-3"),
    ]

    counts = count_by_kind(flags)

    assert [(one.title, one.count, one.anchor) for one in counts] == [
        ("A new address", 2, "1-new-3"),
        ("Hidden characters", 1, "1-new-2"),
    ]
