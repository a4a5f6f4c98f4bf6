from collections.abc import Sequence

from evolution.loop.sampling import choose_sample

Member = tuple[int, str, str]


def sample(members: Sequence[Member], size: int) -> list[int]:
    chosen = choose_sample(members, size, text_of=lambda each: each[1], kind_of=lambda each: each[2])
    return [number for number, _text, _kind in chosen]


def letters(number: int) -> str:
    return "".join(chr(97 + (number * 7 + step * step) % 26) for step in range(20)) + chr(0x4E00 + number) * 9


def different(count: int, kind: str = "a", start: int = 0) -> list[Member]:
    return [(number, letters(number), kind) for number in range(start, start + count)]


def test_the_strongest_and_the_weakest_are_shown() -> None:
    assert sample(different(30), 6) == [0, 1, 2, 3, 28, 29]


def test_all_are_shown_when_there_are_few() -> None:
    assert sample(different(3), 12) == [0, 1, 2]


def test_what_says_the_same_is_shown_once() -> None:
    members = [(0, "3号链接多少钱？", "a"), (1, "4号链接多少钱", "a"), *different(2, start=2)]
    assert sample(members, 12) == [0, 2, 3]


def test_another_category_has_its_turn_before_more_of_the_same() -> None:
    members = [*different(20), *different(2, "b", 20), *different(10, "a", 22)]
    assert {20, 21} <= set(sample(members, 6))


def test_nothing_is_chosen_of_nothing() -> None:
    assert sample([], 12) == []
    assert sample(different(3), 0) == []
