"""Which files and cases the editor is shown."""

import pytest

from evolution.actions.harnesses import ensure_starter
from evolution.loop.draft_material import choose_cases, choose_files
from evolution.loop.halves import coming_round, is_held_in
from evolution.models import DatasetCase
from tests.evolution.intake import make_failure
from tests.evolution.loop.drafts import make_diagnosis
from tests.evolution.measured import DEV, make_case, make_version


def skill(name: str, size: int) -> str:
    return f"---\nname: {name}\ndescription: about {name}\n---\n" + "word " * size


FILES = {
    "harness.yaml": "name: x\nskill_folders: [skills]\n",
    "prompts/role.md": "word " * 100,
    "skills/big/SKILL.md": skill("big", 4_000),
    "skills/pay/SKILL.md": skill("pay", 4_000),
    "skills/small/SKILL.md": skill("small", 10),
    "tools/get_price.yaml": "word " * 100,
}


def test_all_is_shown_while_there_is_room() -> None:
    chosen = choose_files(FILES, "", (), 100_000)
    assert (chosen.shown, chosen.left_out, chosen.cuts()) == (FILES, {}, [])


def test_what_there_is_no_room_for_is_named_with_what_it_is_about() -> None:
    chosen = choose_files(FILES, "", (), 1_000)
    assert chosen.left_out == {"skills/big/SKILL.md": "about big", "skills/pay/SKILL.md": "about pay"}
    assert chosen.cuts()[0] == {
        "path": "skills/big/SKILL.md",
        "characters": len(FILES["skills/big/SKILL.md"]),
    }


@pytest.mark.parametrize("named", ["skills/pay/SKILL.md 的步骤补上", "the skill pay misses a step."])
def test_what_is_named_is_shown_in_any_case(named: str) -> None:
    assert list(choose_files(FILES, named, (), 1_000).left_out) == ["skills/big/SKILL.md"]


def test_what_the_last_draft_changed_is_shown_in_any_case() -> None:
    assert "skills/big/SKILL.md" in choose_files(FILES, "", ["skills/big/SKILL.md"], 0).shown


@pytest.mark.django_db
def test_cases_of_the_held_out_half_are_not_shown() -> None:
    diagnosis = make_diagnosis(ensure_starter(DEV, "live_commerce"))
    harness = diagnosis.harness
    make_version(harness, [make_case(f"q{number}") for number in range(12)])
    for case in DatasetCase.objects.all():
        make_failure(
            harness, f"问题 {case.key}", cluster=diagnosis.cluster, dataset_case=case, request={"q": case.key}
        )
    shown = choose_cases(diagnosis)
    assert shown.keys
    assert all(is_held_in(coming_round(harness), key) for key in shown.keys)
    assert all(brief.trajectory is None for brief in shown.briefs)


@pytest.mark.django_db
def test_what_the_diagnosis_quotes_comes_first_and_long_texts_are_cut() -> None:
    diagnosis = make_diagnosis(ensure_starter(DEV, "live_commerce"))
    late = make_failure(
        diagnosis.harness, "很长", cluster=diagnosis.cluster, strength=0.1, reply="长" * 20_000
    )
    diagnosis.evidence = [{"case": late.pk, "turn": 0, "quote": "很长", "verified": True}]
    shown = choose_cases(diagnosis)
    assert shown.ids[0] == late.pk
    assert [cut["case"] for cut in shown.cuts] == [late.pk]
    assert "characters cut" in shown.briefs[0].reply
