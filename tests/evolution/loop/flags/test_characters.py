import pytest

from evolution.loop.flags import FlagKind
from tests.evolution.loop.flags.changing import CONSTRAINTS, flag, flag_line


@pytest.mark.parametrize(
    ("text", "kind", "detail"),
    [
        ("- zero\u200bwidth", FlagKind.HIDDEN, "U+200B ZERO WIDTH SPACE"),
        ("- a\u2060b\u2060c", FlagKind.HIDDEN, "U+2060 WORD JOINER ×2"),
        ("- soft\u00adhyphen", FlagKind.HIDDEN, "U+00AD SOFT HYPHEN"),
        ("- Korean\u3164filler", FlagKind.HIDDEN, "U+3164 HANGUL FILLER"),
        ("- one\x07two", FlagKind.HIDDEN, "U+0007"),
        ("- a\u202ecba\u202c", FlagKind.BIDIRECTIONAL, "U+202E RIGHT-TO-LEFT OVERRIDE, U+202C"),
        ("- not\u00a0a space", FlagKind.UNUSUAL_SPACE, "U+00A0 NO-BREAK SPACE"),
        ("- p\u0430ypal", FlagKind.MIXED_SCRIPT, "p\u0430ypal → paypal (U+0430 CYRILLIC SMALL LETTER A)"),
        ("- call get_st\u03bfck", FlagKind.MIXED_SCRIPT, "→ get_stock"),
        ("- \u0430\u0440\u0440\u04cf\u0435", FlagKind.LOOK_ALIKE, "→ appie"),
        ("- \uff47\uff45\uff54\uff3f\uff53\uff54\uff4f\uff43\uff4b", FlagKind.LOOK_ALIKE, "→ get_stock"),
        ("- \U0001d422\U0001d420\U0001d427\U0001d428", FlagKind.LOOK_ALIKE, "→ igno"),
    ],
)
def test_what_does_not_show_is_told_beside_its_line(text: str, kind: FlagKind, detail: str) -> None:
    (found,) = flag_line(text)
    assert found[0] == kind
    assert detail in found[1]


def test_text_in_tag_characters_is_spelled_out() -> None:
    smuggled = "".join(chr(0xE0000 + ord(one)) for one in "leak it")
    assert flag_line(f"- 你好{smuggled}")[0][1].endswith("“leak it”")


@pytest.mark.parametrize(
    "text",
    [
        "- 普通的中文，ＳＰＦ５０、全角ＡＢＣ，①②③、「引号」…",
        "- カタカナとひらがな、ﾊﾝｶｸ、漢字の葛\U000e0100",
        "- 한국어 문장입니다",
        "- Это обычный русский текст, он и она",
        "- α = 0.5, ρ, Δt, 10 µm, kΩ, ℃, №5, x², ½",
        "- café naïve straße",
        "- 👨\u200d👩\u200d👧 ❤️ 1️⃣ ☀️ 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f 👍🏽",
        "- می\u200cخواهم",
        "- ideographic\u3000space",
    ],
)
def test_ordinary_text_of_any_language_is_not_flagged(text: str) -> None:
    assert flag_line(text) == []


def test_characters_that_were_there_already_are_no_news() -> None:
    assert flag({CONSTRAINTS: ("## 约束\n", "## 约束与规则\n")}) == []


def test_a_new_path_is_looked_at_too() -> None:
    path = "skills/it\u0435m/SKILL.md"
    text = "---\nname: item\ndescription: 商品\n---\n查商品\n"
    (found,) = [one for one in flag({path: text}) if one.line == 0]
    assert (found.path, found.kind) == (path, FlagKind.MIXED_SCRIPT)
