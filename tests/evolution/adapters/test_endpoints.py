import pytest

from evolution.adapters.endpoints import Endpoint, Times, read_endpoints

ROLES = ["policy", "judge"]


def test_entry_is_read_with_the_settings_times_for_those_it_leaves_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAST_KEY", "secret-1")
    entries = [
        {"base_url": "https://a.example/v1", "api_key_env": "FAST_KEY", "roles": ["judge"], "concurrency": 4},
        {"base_url": "http://b.example:8000/v1", "model": {"policy": "p-1"}, "seconds": 5},
    ]
    first, second = read_endpoints(entries, ROLES, Times(call=30, connect=2))
    assert (first.api_key, first.concurrency, first.seconds, first.connect_seconds) == ("secret-1", 4, 30, 2)
    assert (first.serves("judge"), first.serves("policy")) == (True, False)
    assert (second.serves("judge"), second.seconds) == (True, 5)
    assert (second.model_for("policy"), second.model_for("judge")) == ("p-1", "")


def test_entry_states_its_limits_and_whether_it_takes_a_seed() -> None:
    limits = {"concurrency": 5, "requests_per_minute": 60, "tokens_per_minute": 90_000, "seed": False}
    first, second = read_endpoints(
        [{"base_url": "http://a/v1", **limits}, {"base_url": "http://b/v1"}], ROLES
    )
    assert {name: getattr(first, name) for name in limits} == limits
    assert [getattr(second, name) for name in limits] == [0, 0, 0, True]


def test_one_model_name_is_for_every_role() -> None:
    (endpoint,) = read_endpoints([{"base_url": "http://b/v1", "model": "m"}], ROLES)
    assert (endpoint.model_for("policy"), endpoint.model_for("judge")) == ("m", "m")


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("http://b/v1", "entry 1: it: "),
        ({}, "entry 1: base_url: Field required"),
        ({"base_url": "ftp://b"}, "entry 1: base_url: "),
        ({"base_url": "http://b:port/v1"}, "entry 1: Port could not be cast"),
        (
            {"base_url": "http://b", "concurency": 3},
            "entry 1: concurency: no such key; an entry has base_url, api_key,",
        ),
        ({"base_url": "http://b", "concurrency": -1}, "entry 1: concurrency: "),
        ({"base_url": "http://b", "roles": ["jugde"]}, "no role jugde; the roles are policy, judge"),
        ({"base_url": "http://b", "model": {"jugde": "m"}}, "no role jugde"),
        ({"base_url": "http://b", "api_key_env": "NOT_SET_ANYWHERE"}, "names NOT_SET_ANYWHERE"),
        ({"base_url": "http://b", "api_key": ["sk-secret"]}, "entry 1: api_key: "),
    ],
)
def test_mistake_is_named_with_its_entry_and_without_a_key(entry: object, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as raised:
        read_endpoints([entry], ROLES)
    assert "secret" not in str(raised.value)


def test_key_is_in_no_description() -> None:
    endpoint = Endpoint("https://user:secret@host:8443/v1", api_key="secret")
    assert endpoint.label == "host:8443"
    assert "api_key" not in repr(endpoint)
    assert Endpoint("").label == "api.openai.com"
    assert Endpoint("http://h/v1", name="fast").label == "fast"
