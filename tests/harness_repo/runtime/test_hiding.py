import base64
import html
import json
import time
import urllib.parse

import pytest

from harness_repo.runtime.hiding import hide, hide_secrets

SECRET = 'TOP"SEC  RET\\VAL/=+&<x>'
FORMS = [
    SECRET,
    json.dumps(SECRET),
    json.dumps(json.dumps(SECRET)),
    json.dumps(SECRET).replace("/", "\\/"),
    "".join(f"\\u{ord(character):04X}" for character in SECRET),
    urllib.parse.quote(SECRET),
    urllib.parse.quote(SECRET, safe="").replace("%2F", "%2f"),
    urllib.parse.quote(urllib.parse.quote(SECRET, safe=""), safe=""),
    urllib.parse.quote_plus(SECRET),
    urllib.parse.quote(json.dumps(SECRET)),
    html.escape(SECRET),
    " ".join(SECRET.split()),
    SECRET.replace("  ", "\n\t"),
]


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_hidden_in_every_form_that_a_server_may_give_it(form: str) -> None:
    hidden = hide(f"x{form}y", [SECRET])
    assert "***" in hidden
    assert not any(part in hidden for part in ("TOP", "SEC", "RET", "VAL", "0054"))


@pytest.mark.parametrize("before", [b"", b"B", b"Be"])
def test_its_base64_is_hidden_wherever_it_starts(before: bytes) -> None:
    encoded = base64.b64encode(before + SECRET.encode() + b"tail").decode()
    hidden = hide(encoded, [SECRET])
    assert len(hidden) < 15
    assert "***" in hidden


def test_a_secret_inside_another_one_goes_with_it() -> None:
    assert hide("a tok-12345 b tok-1 c", ["tok-1", "tok-12345"]) == "a *** b *** c"


def test_other_texts_stay_as_they_are() -> None:
    assert hide("tok-2 %41 &amp; \\u0041", ["tok-1", ""]) == "tok-2 %41 &amp; \\u0041"


def test_keys_and_numbers_of_a_value_are_looked_at_too() -> None:
    value = {"tok-1": ["a tok-1", 12345, None, True]}
    assert hide_secrets(value, ["tok-1", "12345"]) == {"***": ["a ***", "***", None, True]}


@pytest.mark.parametrize(
    "text", ["x" * 300_000, "T" * 300_000, "\\" * 100_000, '"' * 100_000, "%25" * 100_000]
)
def test_a_long_text_is_looked_through_at_once(text: str) -> None:
    began = time.process_time()
    hide(text, [SECRET, "TTTTTTTTTTTTTTTTTTTTx"])
    assert time.process_time() - began < 2.5
