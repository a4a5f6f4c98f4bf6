import pytest
from django.http import Http404

from workbench.side_by_side import choose_two


@pytest.mark.parametrize(
    ("ids", "first", "second", "chosen"),
    [
        ([9, 5, 2], None, None, (5, 9)),
        ([9, 5, 2], 2, None, (2, 9)),
        ([9, 5, 2], None, 9, (5, 9)),
        ([9, 5, 2], 2, 5, (2, 5)),
        ([9, 5, 2], 2, 2, None),
        ([9], None, None, None),
        ([9], 9, None, None),
        ([], None, None, None),
    ],
)
def test_what_is_not_chosen_is_the_newest(
    ids: list[int], first: int | None, second: int | None, chosen: tuple[int, int] | None
) -> None:
    assert choose_two(ids, first, second) == chosen


def test_what_is_not_in_the_list_is_not_found() -> None:
    with pytest.raises(Http404):
        choose_two([9, 5], 4, None)
