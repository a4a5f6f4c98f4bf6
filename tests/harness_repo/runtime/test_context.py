import pytest

from harness_repo.runtime.context import AgentRequest, Danmaku, build_variables, normalise_request


def test_several_danmaku_are_one_request_without_empty_and_repeated_ones() -> None:
    entries = [
        {"user": "a", "text": " 在吗 "},
        {"user": "a", "text": "在吗"},
        {"user": "b", "text": " "},
        "多少钱",
    ]
    assert normalise_request({"danmaku": entries}) == AgentRequest(
        (Danmaku("a", "在吗"), Danmaku("", "多少钱"))
    )


def test_everything_of_the_context_is_a_variable_and_what_is_missing_is_empty() -> None:
    variables = build_variables(
        {"danmaku": ["x"], "history": [{"role": "user", "content": "y"}]}, {"room": {"name": "n"}}
    )
    assert set(variables) == {"request", "danmaku", "history", "room", "products", "faq"}
    assert (variables["room"], variables["products"]) == ({"name": "n"}, [])
    assert variables["request"]["danmaku"] == variables["danmaku"] == [{"user": "", "text": "x"}]


@pytest.mark.parametrize(
    "request_", [{"danmaku": "x"}, {"danmaku": [3]}, {"danmaku": [], "history": "x"}, {"history": [3]}]
)
def test_a_request_of_another_shape_is_a_value_error(request_: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"danmaku|history"):
        normalise_request(request_)
