from dataclasses import replace

import pytest

from harness_repo.format.harness import read_harness
from harness_repo.format.prompts import PromptSection, Role
from harness_repo.runtime.prompt import MAX_SECTION_CHARACTERS, PromptError, assemble_prompt
from tests.harness_repo.build import FILES

HARNESS = read_harness(FILES)


def render(*templates: str, role: Role = "system", **variables: object) -> list[dict[str, object]]:
    sections = [PromptSection(f"s{number}", "p", role, text) for number, text in enumerate(templates, 1)]
    return assemble_prompt(replace(HARNESS, prompt=sections), variables)


def test_sections_of_a_role_become_one_message() -> None:
    messages = assemble_prompt(HARNESS, {"danmaku": [{"text": "在吗"}, {"text": "多少钱"}]})
    assert messages == [
        {"role": "system", "content": "You sell.\n- item-qa"},
        {"role": "user", "content": "- 在吗\n- 多少钱"},
    ]


def test_sections_are_joined_by_a_blank_line_and_empty_ones_leave_none() -> None:
    assert render("one\n", "{% if no %}x{% endif %}", "\ntwo", no=False) == [
        {"role": "system", "content": "one\n\ntwo"}
    ]


def test_the_skill_index_can_be_shown() -> None:
    text = "{% for s in skills %}{{ s.name }} {{ s.kind }} {{ s.description }}{% endfor %}"
    assert render(text)[0]["content"] == "item-qa reply Questions about an item."


@pytest.mark.parametrize(
    ("template", "line"),
    [
        ("a\n\n{{ nowhere }}", 3),
        ("a\n{{ room.nowhere }}", 2),
        ("a\n{% if %}", 2),
        ("{% include 'x' %}", 1),
        ("\n{{ ''.__class__.__mro__ }}", 2),
        ("\n{{ room.update({'a': 1}) }}", 2),
        ("{{ 1 / 0 }}", 1),
        ("{% for i in range(10**9) %}{% endfor %}", 1),
        ("{% for i in range(1001) %}{% endfor %}", 1),
        ("{{ lipsum() }}", 1),
    ],
)
def test_a_section_that_cannot_be_rendered_is_named_with_its_line(template: str, line: int) -> None:
    with pytest.raises(PromptError) as caught:
        render("fine", template, room={})
    assert (caught.value.section, caught.value.line) == ("s2", line)


def test_a_section_that_grows_without_end_is_stopped() -> None:
    loop = "{% for i in range(900) %}{% for j in range(900) %}xxxxxxxxxx{% endfor %}{% endfor %}"
    with pytest.raises(PromptError, match=str(MAX_SECTION_CHARACTERS)):
        render(loop)


def test_what_a_viewer_writes_is_never_a_template() -> None:
    assert render("{{ text }}", text="{{ 7 * 7 }}<b>")[0]["content"] == "{{ 7 * 7 }}<b>"
