import pytest

from evolution.loop.flags import Flag, FlagKind
from evolution.loop.flags.parts import lost_phrases
from tests.evolution.loop.flags.changing import BASE, STOCK_SKILL, STOCK_TOOL, edited, flag, kinds

HTTP = "source: {kind: http, method: GET, url: 'https://stock.example/x'}"


def test_a_tool_that_goes_elsewhere_is_flagged() -> None:
    found = flag({STOCK_TOOL: ("source: {kind: fixture}", HTTP)})
    assert {one.kind for one in found} == {FlagKind.NEW_HOST, FlagKind.SOURCE_CHANGED}
    line = BASE[STOCK_TOOL].decode().split("\n").index("source: {kind: fixture}") + 1
    assert {one.line for one in found} == {line}


def test_a_new_tool_that_reaches_out_is_flagged_and_one_of_fixtures_is_not() -> None:
    text = BASE[STOCK_TOOL].decode().replace("get_stock", "get_more")
    assert flag({"tools/get_more.yaml": text}) == []
    reaching = text.replace("source: {kind: fixture}", HTTP)
    assert FlagKind.SOURCE_CHANGED in kinds({"tools/get_more.yaml": reaching})


def test_a_tool_that_takes_more_is_flagged_where_it_refused() -> None:
    line = BASE[STOCK_TOOL].decode().split("\n").index("  required: [link_id]") + 1
    assert flag({STOCK_TOOL: ("  required: [link_id]\n", "")}) == [
        Flag(STOCK_TOOL, "old", line, FlagKind.SCHEMA_LOOSENED, "required − link_id")
    ]


def test_what_is_gone_is_flagged_where_it_stood() -> None:
    assert flag({STOCK_TOOL: None}) == [Flag(STOCK_TOOL, "old", 1, FlagKind.TOOL_REMOVED, "get_stock")]
    assert flag({STOCK_SKILL: None}) == [Flag(STOCK_SKILL, "old", 1, FlagKind.SKILL_REMOVED, "stock-qa")]


def test_a_renamed_skill_is_the_same_skill() -> None:
    moved = edited({STOCK_SKILL: ("name: stock-qa", "name: stock")})[STOCK_SKILL]
    assert flag({STOCK_SKILL: None, "skills/stock/SKILL.md": moved}) == []


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        (
            "库存问答。观众问有没有货、断货、补货时使用。",
            "库存问答。观众问有没有货时使用。",
            ["断货", "补货"],
        ),
        (
            "Use for price or stock questions",
            "Use only for price questions",
            ["Use for price", "stock questions", "only"],
        ),
        ("Prices, coupons.", "Coupons, prices, and gifts.", []),
    ],
)
def test_a_description_names_what_it_lost(before: str, after: str, lost: list[str]) -> None:
    assert lost_phrases(before, after) == lost


def test_a_narrower_description_and_more_tools_are_flagged_at_their_lines() -> None:
    found = flag(
        {
            STOCK_SKILL: ("、断货", ""),
            "skills/spec-qa/SKILL.md": ("metadata:", "allowed-tools: Bash\nmetadata:"),
        }
    )
    assert [(one.path, one.line, one.kind, one.detail) for one in found] == [
        ("skills/spec-qa/SKILL.md", 4, FlagKind.GRANT_CHANGED, "allowed-tools + Bash"),
        (STOCK_SKILL, 3, FlagKind.DESCRIPTION_NARROWED, "断货"),
    ]
