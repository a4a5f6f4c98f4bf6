from evolution.loop.template_text import LONGEST_CONDITION, read_template_text


def test_a_text_without_a_template_is_said_as_it_is() -> None:
    for text in ("", "plain\n\ntext\n", "100 % {sure}\n", "{% broken", "{# never closed\n- Never.\n"):
        read = read_template_text(text)
        assert (read.shown.rstrip("\n"), read.around) == (text.rstrip("\n"), {})


def test_every_line_keeps_its_number() -> None:
    text = "a\n{#- c\nd -#}\n\n{%- if x -%}\n\nb {{ 'y\n}}' }} later\n{% endif %}{% raw %}{% if %}\n{% endraw %}\nz\n"
    shown = read_template_text(text).shown.split("\n")

    for said in ("a", "b ", "later", "{% if %}", "z"):
        line = next(at for at, one in enumerate(text.split("\n")) if said in one)
        assert said in shown[line]
    assert "d" not in "".join(shown)


def test_conditions_in_each_other_are_told_from_the_outermost_on() -> None:
    read = read_template_text(
        "{% if a %}\n{% with b = 1 %}\nx\n{% endwith %}\n{% else %}\ny\n{% endif %}\nz\n"
    )

    assert read.around == {2: "{% if a %} {% with b = 1 %}", 5: "{% if a %} {% else %}"}


def test_long_conditions_are_cut_and_stay_different() -> None:
    text = "{% if a %}" * 100
    first, second = (read_template_text(f"{text}{end}x").around[0] for end in ("{% if b %}", "{% if c %}"))

    assert first != second
    assert len(first) == len(second) == LONGEST_CONDITION


def test_what_is_repeated_is_not_shown_in_whatever_it_stands() -> None:
    read = read_template_text("{% for a in b %}\n{% if c %}\nx\n{% endif %}\n{% endfor %}\ny")

    assert read.shown.split() == ["y"]
