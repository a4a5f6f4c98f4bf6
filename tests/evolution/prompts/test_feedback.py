"""Reviewers' words and comments on lines as one instruction, and back."""

from evolution.prompts.feedback import LineComment, read_feedback, write_feedback

SKILL = "skills/pay/SKILL.md"
LINE = LineComment(SKILL, "new", 12, "- Quote the price.", (("anna", "shorter"), ("ben", "yes: half")))
OLD_LINE = LineComment(SKILL, "old", 3, "- Be brief.", (("anna", "why did it go?"),))
FILE = LineComment("harness.yaml", "new", 0, "", (("anna", "leave it"),))


def test_what_was_written_is_read_back() -> None:
    text = write_feedback("Shorter, please.\n\nAnd kinder.", [LINE, OLD_LINE, FILE])
    assert read_feedback(text) == ("Shorter, please.\n\nAnd kinder.", [LINE, OLD_LINE, FILE])


def test_a_place_names_path_line_and_side() -> None:
    assert write_feedback("", [LINE]).splitlines()[:2] == [
        f"[{SKILL}:12] > - Quote the price.",
        "anna: shorter",
    ]
    assert write_feedback("", [OLD_LINE]).startswith(f"[{SKILL}:3 old] > ")


def test_other_text_is_words() -> None:
    for text in ("[a] b", "[x.md:3] > line without a comment", "anna: hello", ""):
        assert read_feedback(text) == (text, [])


def test_a_comment_of_several_lines_stays_with_its_place() -> None:
    comment = LineComment(SKILL, "new", 1, "x", (("anna", "one\n\n[b.md:2] > y\nben: two"),))
    _words, read = read_feedback(write_feedback("", [comment]))
    assert [(each.path, len(each.comments)) for each in read] == [(SKILL, 1)]
