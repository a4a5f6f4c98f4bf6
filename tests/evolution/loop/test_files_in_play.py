import pytest
import yaml

from evolution.loop.authors import author_of
from evolution.loop.files_in_play import choose_files, compare_versions
from evolution.loop.repositories import open_repository
from evolution.models import FailureCase, Harness
from harness_repo.format.harness import read_harness
from harness_repo.git.repository import MAIN
from harness_repo.starters import starter_files
from tests.evolution.measured import DEV, make_harness

FILES = dict(starter_files("live_commerce"))


def case(**trajectory: object) -> FailureCase:
    return FailureCase(title="几天能到", trajectory=trajectory)


def test_all_files_are_shown_while_there_is_space() -> None:
    shown = choose_files(FILES, [case()], 100_000)
    assert shown.texts["tools/get_delivery_info.yaml"].encode() == FILES["tools/get_delivery_info.yaml"]
    assert shown.cuts == []


def test_what_the_cases_used_comes_whole_and_the_rest_by_its_description() -> None:
    calls = [{"turn": 1, "name": "get_delivery_info"}]
    shown = choose_files(FILES, [case(skills_loaded=["delivery-qa"], tool_calls=calls)], 3_500)
    for path in ("harness.yaml", "prompts/constraints.md", "skills/delivery-qa/SKILL.md"):
        assert shown.texts[path].encode() == FILES[path]
    described = {cut["path"] for cut in shown.cuts}
    assert described
    assert all("not shown" in shown.texts[path] for path in described)
    assert shown.tokens <= 3_500


def test_a_described_skill_still_reads_as_one_and_a_tool_names_its_arguments() -> None:
    shown = choose_files(FILES, [case()], 2_600)
    left = read_harness({path: text.encode() for path, text in shown.texts.items()})
    whole = read_harness(FILES)
    names = {skill.name: skill.description for skill in whole.skills.values()}
    assert {skill.name: skill.description for skill in left.skills.values()} == names
    tool = yaml.safe_load(shown.texts["tools/get_stock.yaml"])
    assert (tool["name"], set(tool["parameters"]["properties"])) == ("get_stock", {"link_id"})


def test_a_file_that_does_not_fit_is_cut_and_says_so() -> None:
    files = {**FILES, "prompts/constraints.md": ("- 规则。\n" * 4_000).encode()}
    shown = choose_files(files, [case()], 3_000)
    assert "characters cut …]" in shown.texts["prompts/constraints.md"]
    assert any(cut["path"] == "prompts/constraints.md" for cut in shown.cuts)


@pytest.mark.django_db
def test_a_case_of_another_version_is_shown_what_has_changed_since() -> None:
    harness: Harness = make_harness()
    repository = open_repository(harness)
    old = repository.resolve(MAIN)
    path = "prompts/role.md"
    text = repository.read_file(old, path) + "- 新规则。\n".encode()
    live = repository.commit("x", {path: text}, parent=old, author=author_of(DEV), message="x")
    cases = [
        FailureCase(pk=1, harness_commit=old),
        FailureCase(pk=2, harness_commit=live),
        FailureCase(pk=3),
        FailureCase(pk=4, harness_commit="f" * 40),
    ]
    found = {tuple(each["cases"]): each for each in compare_versions(repository, live, cases, [path], 1_000)}
    assert set(found) == {(1,), (3,), (4,)}
    assert "+- 新规则。" in found[1,]["changed_since"]
    assert found[3,]["version"] == "not known"
    assert "does not have" in found[4,]["version"]
