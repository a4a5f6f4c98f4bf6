from evolution.loop.flags import FlagKind, find_flags
from evolution.loop.flags.rendering import flag_unsaid

PROMPT = "prompts/role.md"
RULES = "- Never promise a refund.\n- Never sell more than {{ room.limit }} pieces.\n"


def _lines(before: str, after: str) -> list[tuple[str, str, int]]:
    found = flag_unsaid({PROMPT: before.encode()}, {PROMPT: after.encode()})
    return [(one.path, one.side, one.line) for one in found]


def test_a_value_that_switches_a_rule_off_is_seen_beside_the_rule() -> None:
    before = f"Hello.\n{{% if history %}}\n{RULES}{{% endif %}}\n"
    after = f"{{% set history = [] %}}\n{before}"

    assert _lines(before, after) == [(PROMPT, "new", 4), (PROMPT, "new", 5)]
    # Nothing in the text of the rules, or of what is around them, has changed.
    flags = find_flags({PROMPT: before.encode()}, {PROMPT: after.encode()})
    assert [one.kind for one in flags] == [FlagKind.RULE_CONDITIONAL] * 2


def test_a_rule_that_is_still_said_is_not_flagged() -> None:
    before = f"Hello {{{{ room.name }}}}.\n{RULES}"

    for after in (
        f"{{% set shop = 'x' %}}\n{before}",
        f"{before}Somewhat more, below the last of the rules.\n",
        f"{{% raw %}}\n{before}{{% endraw %}}\n".replace("{{ room.limit }}", "five"),
        f"{{% if true %}}\n{before}{{% endif %}}\n",
        f"{before}{{% for item in faq %}}\n- Never mind {{{{ item.question }}}}\n{{% endfor %}}\n",
    ):
        assert _lines(before, after) == []


def test_what_cannot_be_rendered_raises_nothing() -> None:
    for odd in (
        "{% if %}",
        "{{ 1 // 0 }}",
        "{{ history + 1 }}",
        "".join(f"{{% for {name} in range(1000) %}}" for name in "abc") + "{% endfor %}" * 3,
        "{% include 'other' %}",
        "\0",
    ):
        assert _lines(RULES, odd + RULES) == []
