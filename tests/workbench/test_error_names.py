from evolution.loop import outcomes
from workbench.error_names import name_error


def test_every_error_kind_has_words() -> None:
    kinds = {value for name, value in vars(outcomes).items() if name.isupper() and isinstance(value, str)}

    assert "judge_output" in kinds
    assert [kind for kind in kinds if name_error(kind) == kind] == []


def test_a_kind_of_another_tool_stays_as_it_is() -> None:
    assert name_error("sandbox_crash") == "sandbox_crash"
