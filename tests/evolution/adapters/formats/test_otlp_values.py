import pytest

from evolution.adapters.formats.otlp_values import (
    read_attributes,
    read_id,
    read_moment,
    read_state,
    read_value,
)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        # 16 bytes, in hex and in base64
        ("4BF92F3577B34DA6A3CE929D0E0E4736", "4bf92f3577b34da6a3ce929d0e0e4736"),
        ("S/kvNXezTaajzpKdDg5HNg==", "4bf92f3577b34da6a3ce929d0e0e4736"),
        ("S_kvNXezTaajzpKdDg5HNg==", "4bf92f3577b34da6a3ce929d0e0e4736"),
        ("0x4bf92f3577b34da6a3ce929d0e0e4736", "4bf92f3577b34da6a3ce929d0e0e4736"),
        # 64-bit ids of older tracers
        ("a3ce929d0e0e4736", "a3ce929d0e0e4736"),
        ({"type": "Buffer", "data": [0] * 15 + [255]}, "0" * 30 + "ff"),
        ("0" * 32, ""),
        ("AAAAAAAAAAAAAAAAAAAAAA==", ""),
        ("", ""),
        (None, ""),
        ([256], ""),
        # of no known encoding, and still an id
        ("trace-7", "trace-7"),
        (1234567, "1234567"),
    ],
)
def test_ids(given: object, wanted: str) -> None:
    assert read_id(given, 16) == wanted


@pytest.mark.parametrize(
    "given",
    [
        [1746026930, 5000],
        "2025-04-30T15:28:50.000005Z",
        "2025-04-30T17:28:50.000005+02:00",
        1746026930000005,
        1746026930000005000,
        "1746026930000005000",
    ],
)
def test_a_moment_in_any_writing(given: object) -> None:
    assert read_moment(given) == 1746026930000005000


@pytest.mark.parametrize("given", [None, "", "yesterday", [1], [], {}, -5, "endOnlyTimestamp", True])
def test_what_is_no_moment(given: object) -> None:
    assert read_moment(given) == 0


@pytest.mark.parametrize(
    ("code", "state"), [(2, "error"), ("StatusCode.ERROR", "error"), ("Ok", "ok"), (7, ""), ({}, "")]
)
def test_states(code: object, state: str) -> None:
    assert read_state(code) == state


@pytest.mark.parametrize("text", ["9223372036854775807", "-9223372036854775808", "18446744073709551615"])
def test_integers_keep_every_digit(text: str) -> None:
    assert read_value({"intValue": text}) == int(text)


@pytest.mark.parametrize("given", [None, 5, "x", [None, {}, {"key": 3}, "y"]])
def test_attributes_that_are_none(given: object) -> None:
    assert read_attributes(given) == {}
