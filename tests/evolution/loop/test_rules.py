from evolution.loop.rules import Rule, compare_rules, leave_out_unlisted, list_rules
from harness_repo.starters import starter_files

PROMPT = "prompts/constraints.md"
SKILL = "skills/price/SKILL.md"
HOOK = "hooks/length.yaml"
HOOK_TEXT = (
    b"name: length\nevent: reply\ncheck: {kind: max_length, characters: 100}\non_fail: {action: block}\n"
)


def texts(rules: list[Rule]) -> list[str]:
    return [rule.text for rule in rules]


def test_a_prompts_list_items_are_its_rules_each_with_its_line() -> None:
    files = {PROMPT: "## 约束\n- 不要编造。\n- 语气\n  要口语化。\n\n1. Say hello.\n".encode()}

    assert [(rule.line, rule.text, rule.kind) for rule in list_rules(files)] == [
        (2, "不要编造。", "rule"),
        (3, "语气 要口语化。", "rule"),
        (6, "Say hello.", "rule"),
    ]


def test_outside_of_lists_a_line_that_obliges_is_a_rule() -> None:
    files = {
        PROMPT: b"# You must see\nYou are the host.\nNever share a number.\n\n```\nYou must not count\n```\n"
    }

    assert [(rule.line, rule.text) for rule in list_rules(files)] == [(3, "Never share a number.")]


def test_what_a_template_repeats_is_no_rule() -> None:
    files = {
        PROMPT: b"{% for item in faq %}\n- Never mind {{ item }}\n{% endfor %}\n{# - no #}\n- Greet {{ room.name }}\n"
    }

    assert [(rule.line, rule.text) for rule in list_rules(files)] == [(5, "Greet {{ room.name }}")]


def test_a_skill_has_its_description_and_the_items_of_its_body() -> None:
    files = {SKILL: b"---\nname: price\ndescription: Use for\n  prices.\n---\n# Steps\n1. Look it up.\n"}

    assert [(rule.line, rule.text, rule.name) for rule in list_rules(files)] == [
        (3, "Use for prices.", "description"),
        (7, "Look it up.", ""),
    ]


def test_texts_beside_a_skill_count_and_others_do_not() -> None:
    files = {SKILL: b"---\nname: price\ndescription: d\n---\n", "skills/price/more.md": b"- a rule\n"}
    files |= {"README.md": b"- no rule\n", "docs/x.md": b"- no rule\n"}

    assert texts(list_rules(files)) == ["d", "a rule"]


def test_a_hook_is_one_rule_and_a_broken_one_is_its_text() -> None:
    hook, broken = list_rules({HOOK: HOOK_TEXT, "hooks/z.yaml": b"name: [\n"})

    assert (hook.kind, hook.name, hook.line) == ("hook", "length", 3)
    assert "100" in hook.text
    assert "block" in hook.text
    assert (broken.text, broken.name) == ("name: [", "z")


def test_the_same_hook_in_another_order_is_the_same_rule() -> None:
    other = b"on_fail: {action: block}\nevent: reply\nname: length\n# why\ncheck: {characters: 100, kind: max_length}\n"

    changes = compare_rules({HOOK: HOOK_TEXT}, {HOOK: other})

    assert (changes.added, changes.removed, changes.changed) == ([], [], [])


def test_a_rule_that_only_moved_is_no_change() -> None:
    before = {PROMPT: b"- one\n- two rules\n", "prompts/b.md": b"- three\n"}
    after = {PROMPT: b"# New\n\n- two rules\n", "prompts/c.md": b"- three\n- one\n"}

    changes = compare_rules(before, after)

    assert (changes.added, changes.removed, changes.changed) == ([], [], [])


def test_a_rule_that_is_said_twice_and_then_once_is_removed_once() -> None:
    changes = compare_rules({PROMPT: b"- be kind\n- be kind\n"}, {PROMPT: b"- be kind\n"})

    assert texts(changes.removed) == ["be kind"]


def test_added_removed_and_changed_rules_are_told_apart() -> None:
    before = {PROMPT: b"- Never promise a date of delivery.\n- Greet everybody.\n", HOOK: HOOK_TEXT}
    after = {PROMPT: b"- Avoid to promise a date of delivery.\n- Quote prices only.\n"}
    after["hooks/renamed.yaml"] = HOOK_TEXT.replace(b"100", b"300")

    changes = compare_rules(before, after)

    assert (texts(changes.added), texts(changes.removed)) == (["Quote prices only."], ["Greet everybody."])
    hook, prompt = changes.changed
    assert ("100" in hook[0].text, "300" in hook[1].text) == (True, True)
    assert [rule.text.split()[0] for rule in prompt] == ["Never", "Avoid"]


def test_files_of_any_kind_raise_nothing() -> None:
    odd = {
        PROMPT: b"\xff\xfe- \x00",
        SKILL: b"no front matter\n- rule\n",
        HOOK: b"- a list\n",
        "tools/t.yaml": b"\x00",
        "prompts/loop.md": b"{% endfor %}{% for x in y %}- open\n",
    }

    assert {rule.kind for rule in compare_rules({}, odd).added} == {"skill", "hook", "tool"}


def test_the_starter_says_what_its_files_say() -> None:
    files = starter_files("live_commerce")

    found = list_rules(files)

    constraints = [rule.text for rule in found if rule.path == PROMPT]
    assert constraints == [
        line.removeprefix("- ") for line in files[PROMPT].decode().splitlines() if line.startswith("- ")
    ]
    assert sum(rule.kind == "tool" for rule in found) == sum(path.startswith("tools/") for path in files)


def test_thousands_of_changed_rules_are_told_without_comparing_each_with_each() -> None:
    def many(word: str) -> dict[str, bytes]:
        return {
            f"prompts/{n}.md": b"".join(b"- %s %d %d\n" % (word.encode(), n, m) for m in range(40))
            for n in range(100)
        }

    changes = compare_rules(many("say the thing"), many("say the things"))

    assert len(changes.changed) + len(changes.added) == 4_000
    assert changes.added


def test_a_rule_under_a_condition_of_the_template_is_another_rule() -> None:
    said = b"- Never promise a refund.\n- Greet.\n"
    for opening, closing in (
        (b"{% if false %}", b"{% endif %}"),
        (b"{% macro m() %}", b"{% endmacro %}"),
        (b"{% set m %}", b"{% endset %}"),
        (b"{%- if false -%}\n", b"{% endif %}"),
    ):
        after = opening + b"\n" + said + closing + b"\n"

        changes = compare_rules({PROMPT: said}, {PROMPT: after})

        assert [new.text for _, new in changes.changed] == ["Never promise a refund.", "Greet."]
        assert all(new.condition.startswith(opening.decode()[:2]) for _, new in changes.changed)
    one_line = b"- Never {% if false %}promise a refund.{% endif %}\n- Greet.\n"
    assert len(compare_rules({PROMPT: said}, {PROMPT: one_line}).changed) == 1


def test_a_value_that_a_template_sets_is_no_condition() -> None:
    text = b"{% set shop = 'x' %}\n- Never promise a refund.\n"

    assert [rule.condition for rule in list_rules({PROMPT: text})] == [""]


def test_a_section_that_is_no_longer_listed_takes_its_rules_along() -> None:
    safety = {PROMPT: b"- Never promise a refund.\n", HOOK: HOOK_TEXT}
    listed = {"harness.yaml": f"prompt:\n- {{name: a, file: {PROMPT}}}\n".encode(), **safety}
    changes = [
        compare_rules(leave_out_unlisted(listed), leave_out_unlisted({"harness.yaml": config, **safety}))
        for config in (b"prompt: []\n", b"prompt:\n- {file: [x]}\n- x\n", b"prompt: [\n")
    ]

    assert [texts(each.removed) for each in changes] == [["Never promise a refund."]] * 2 + [[]]
    assert leave_out_unlisted(safety) == safety
