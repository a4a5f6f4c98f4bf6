from hypothesis import given, settings
from hypothesis import strategies as st

from evolution.loop.flags import FlagKind, find_flags
from evolution.loop.flags.changes import list_changes
from tests.evolution.loop.flags.changing import (
    BASE,
    CONSTRAINTS,
    LENGTH,
    PLATFORM,
    STOCK_SKILL,
    STOCK_TOOL,
    edited,
    flag,
)

NEW_SKILL = """---
name: gift-qa
description: 赠品问答。观众问有没有赠品、送什么时使用。
metadata:
  kind: reply
---
# 赠品问答

## 步骤
1. 调用 `get_live_activity` 查活动。

## 回复要点
- 说明 gift（赠品）。

## 注意
- 不要说赠品的价值。
"""


def test_nothing_is_flagged_where_nothing_differs() -> None:
    assert find_flags(BASE, dict(BASE)) == []


def test_a_harness_made_from_nothing_is_hardly_flagged() -> None:
    """The starter is ordinary: none of its own texts looks hidden, injected or foreign."""
    assert find_flags({}, BASE) == []


def test_an_ordinary_skill_is_not_flagged() -> None:
    assert flag({"skills/gift-qa/SKILL.md": NEW_SKILL}) == []


def test_line_ends_alone_are_not_flagged() -> None:
    assert (
        flag({path: BASE[path].replace(b"\n", b"\r\n") for path in (CONSTRAINTS, PLATFORM, STOCK_SKILL)})
        == []
    )


def test_flags_come_by_file_and_line_and_once_each() -> None:
    found = flag({CONSTRAINTS: ("## 约束\n", "## 约束\n- a\u200bb c\u202ed\n- x\u200by\n"), LENGTH: None})
    assert found == sorted(set(found))
    assert [(one.path, one.line) for one in found] == [
        (LENGTH, 1),
        (CONSTRAINTS, 2),
        (CONSTRAINTS, 2),
        (CONSTRAINTS, 3),
    ]


def test_a_renamed_file_is_compared_with_what_it_was() -> None:
    head = edited({CONSTRAINTS: None, "prompts/rules.md": BASE[CONSTRAINTS] + "- 新的一条。\n".encode()})
    (change,) = list_changes(BASE, head)
    assert (change.old_path, change.new_path) == (CONSTRAINTS, "prompts/rules.md")
    assert [line.text for line in change.added] == ["- 新的一条。"]


PATHS = st.sampled_from([CONSTRAINTS, PLATFORM, STOCK_SKILL, STOCK_TOOL, "harness.yaml", "hooks/new.yaml"])
CONTENTS = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace")),
    st.sampled_from(
        [b"[]", b"- 1\n", b"name: {}\n", b"limits: 3\nprompt: x\n", b"---\n---\n", b"check: [1]\nevent: {}\n"]
    ),
)


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(PATHS, CONTENTS, max_size=4), st.dictionaries(PATHS, CONTENTS, max_size=4))
def test_no_content_makes_it_raise(before: dict[str, bytes], after: dict[str, bytes]) -> None:
    for base, head in ((BASE, {**BASE, **after}), ({**BASE, **before}, {**BASE, **after}), (before, after)):
        assert all(one.kind in FlagKind for one in find_flags(base, head, ["观众：多少钱"]))
