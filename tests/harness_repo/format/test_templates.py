from dataclasses import replace

import pytest
from jinja2 import nodes

from harness_repo.format.harness import read_harness
from harness_repo.format.prompts import PromptSection
from harness_repo.format.templates import TemplateUnusable, template_environment, variables_of
from harness_repo.runtime.prompt import PromptError, assemble_prompt
from tests.harness_repo.build import FILES


def render(text: str) -> str:
    section = PromptSection("s", "prompts/s.md", "system", text)
    [message] = assemble_prompt(replace(read_harness(FILES), prompt=[section]), {})
    return str(message["content"])


@pytest.mark.parametrize(
    "text",
    [
        "{{ 1|seen }}",
        "{{ 'a' ~ (1|seen) }}",
        "{% if 1|seen %}{% endif %}",
        "{% set x = [1|seen] %}",
        "{% autoescape 1|seen %}x{% endautoescape %}",
        "{% for x in [1|seen] %}{{ 1|seen }}{% endfor %}",
        "{{ 9 ** 9 }}",
        "{{ '%9d' % 1 }}",
        "{% autoescape 9 ** 9 %}{{ 9 * 9 }}{% endautoescape %}",
    ],
)
def test_nothing_is_computed_before_it_is_rendered(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[object] = []
    monkeypatch.setitem(template_environment().filters, "seen", computed.append)
    for operator in ("**", "*", "%"):
        monkeypatch.setitem(nodes._binop_to_func, operator, lambda *values: computed.append(values))
    variables_of.cache_clear()
    assert variables_of(text) == frozenset()
    template_environment().from_string(text)
    assert computed == []


@pytest.mark.parametrize(
    "text",
    [
        "{{ 9 ** (9 ** 9) }}",
        "{{ 10 ** 100000 }}",
        "{{ (2 ** 40000) * (2 ** 40000) }}",
        "{{ 'a' * 10 ** 9 }}",
        "{{ 10 ** 9 * ['a'] }}",
        "{{ '%999999999d' % 1 }}",
        "{{ '%(a)999999999d' % {'a': 1} }}",
        "{{ '%*d' % (10 ** 9, 1) }}",
        "{{ '%.99999f'|format(1.5) }}",
        "{{ 1|round(10 ** 9, 'ceil') }}",
        "{{ 1|round(-(10 ** 9)) }}",
    ],
)
def test_no_step_of_a_template_makes_something_huge(text: str) -> None:
    with pytest.raises(PromptError, match=r"too many digits|repeated|wider|rounded"):
        render(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ 2 ** 10 }} {{ 2 ** -1 }} {{ 2.0 ** 0.5 }}", "1024 0.5 1.4142135623730951"),
        ("{{ 'ab' * 3 }} {{ 3 * 4 }} {{ 1.5 * 2 }}", "ababab 12 3.0"),
        ("{{ 7 % 4 }} {{ '%5.2f|%s' % (3.14159, 'x') }}", "3  3.14|x"),
        ("{{ '%s-%(b)s'|replace('%(b)s', '%s')|format('a', 'b') }}", "a-b"),
        ("{{ 2.567|round(2) }} {{ 2.1|round(0, 'ceil') }}", "2.57 3.0"),
        ("{% autoescape true %}{{ '<' }}{% endautoescape %}{{ '<' }}", "&lt;<"),
        ("{{ 1 + 2 * 3 }}{{ 'a' ~ 1 }}", "7a1"),
    ],
)
def test_what_is_computed_is_as_in_jinja2(text: str, said: str) -> None:
    assert render(text) == said


@pytest.mark.parametrize(
    ("text", "line"),
    [("{{ " + "1" * 5000 + " }}", 0), ("\n{{ 1", 2), ("{{ a|nofilter }}", 1), ("{{ " + "(" * 3000 + "1", 0)],
)
def test_a_text_that_is_no_template_says_where(text: str, line: int) -> None:
    with pytest.raises(TemplateUnusable) as caught:
        variables_of(text)
    assert caught.value.line == line


def test_variables_are_those_from_outside() -> None:
    text = "{% set a = b %}{% for c in d %}{{ a }}{{ loop.index }}{{ e.f }}{% endfor %}{{ range(3) }}{{ 1|round(g) }}"
    assert variables_of(text) == {"b", "d", "e", "g"}
