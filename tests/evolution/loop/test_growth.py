import json

from evolution.loop.growth import measure_growth, weigh_harness
from evolution.prompts.tokens import estimate_tokens
from harness_repo.starters import starter_files
from tests.evolution.measured import AGENT

SKILL = "skills/price/SKILL.md"


def skill(description: str, body: str) -> bytes:
    return f"---\nname: price\ndescription: {description}\nmetadata:\n  kind: reply\n---\n{body}\n".encode()


def test_a_longer_skill_body_weighs_only_when_it_is_loaded() -> None:
    base = {**AGENT, SKILL: skill("prices", "a" * 400)}
    growth = measure_growth(base, {**AGENT, SKILL: skill("prices", "a" * 800)})

    assert growth["on_demand"] == [100, 200]
    assert growth["always"][0] == growth["always"][1]


def test_descriptions_prompts_and_hook_messages_weigh_in_every_prompt() -> None:
    head = {
        **AGENT,
        SKILL: skill("d" * 400, "body"),
        "prompts/role.md": AGENT["prompts/role.md"] + b"r" * 400,
    }
    hook = {"name": "h", "event": "reply", "check": {"kind": "no_promise"}}
    head["hooks/h.yaml"] = json.dumps({**hook, "on_fail": {"action": "retry", "message": "m" * 400}}).encode()

    before, after = measure_growth({**AGENT, SKILL: skill("d", "body")}, head)["always"]

    assert 298 <= after - before <= 302


def test_tools_weigh_what_the_model_is_sent_of_them() -> None:
    files = starter_files("live_commerce")
    sent = weigh_harness(files).tools

    without = weigh_harness({path: data for path, data in files.items() if path != "tools/get_stock.yaml"})

    assert 0 < sent - without.tools < estimate_tokens(files["tools/get_stock.yaml"].decode()) * 2


def test_what_cannot_be_read_weighs_nothing() -> None:
    assert measure_growth({}, {"hooks/h.yaml": b"\x00", "prompts/x.md": b"not listed"}) == {
        "always": [0, 0],
        "on_demand": [0, 0],
        "tools": [0, 0],
    }
