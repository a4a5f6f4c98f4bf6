from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from workbench.environment import Environment, check_var

env = Environment()


def test_a_database_url_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://me:secret@db:5433/wb")
    config = env.database("DATABASE_URL")
    assert (config["ENGINE"], config["NAME"]) == ("django.db.backends.postgresql", "wb")
    assert (config["HOST"], config["PORT"], config["PASSWORD"]) == ("db", 5433, "secret")


@pytest.mark.parametrize(
    "url",
    ["nonsense", "sqlite:///x", "postgres://", "postgres://me@db", "postgres://me:secret@db:port/wb", "://"],
)
def test_what_is_no_database_says_what_to_write(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    with pytest.raises(
        ImproperlyConfigured, match=r"DATABASE_URL .* write postgres://USER:PASSWORD@HOST"
    ) as caught:
        env.database("DATABASE_URL")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["redis://h:6379/0", "redis+socket:///run/x.sock", "redis://a/0;redis://b/0"])
def test_a_broker_is_taken(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("CELERY_BROKER_URL", url)
    assert env.broker("CELERY_BROKER_URL") == url


@pytest.mark.parametrize("url", ["nonsense", "redis://h:port/0", "redis://a/0;b"])
def test_what_is_no_broker_says_what_to_write(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("CELERY_BROKER_URL", url)
    with pytest.raises(ImproperlyConfigured, match=r"CELERY_BROKER_URL .* write redis://HOST"):
        env.broker("CELERY_BROKER_URL")


def test_a_value_of_another_type_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONN_MAX_AGE", "soon")
    with pytest.raises(ImproperlyConfigured, match=r"CONN_MAX_AGE can't be read: .*'soon'"):
        env.int("CONN_MAX_AGE", default=60)


def test_an_empty_variable_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMPTY", "")
    assert env.int("EMPTY", default=60) == 60
    assert env.float("EMPTY", default=1.5) == 1.5
    assert env.json("EMPTY", default={"a": 1}) == {"a": 1}
    assert env.list("EMPTY", default=["b"]) == ["b"]
    assert env.bool("EMPTY", default=True) is True
    with pytest.raises(ImproperlyConfigured):
        env.int("EMPTY")


def test_var_is_a_folder_or_to_be_made(tmp_path: Path) -> None:
    assert check_var(tmp_path / "new") == tmp_path / "new"
    (tmp_path / "file").touch()
    with pytest.raises(ImproperlyConfigured, match="file is a file; WORKBENCH_VAR must name a folder"):
        check_var(tmp_path / "file")


def test_a_list_is_read_from_the_variable_or_from_the_file_it_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert env.json_list("LLM_ENDPOINTS") == []
    monkeypatch.setenv("LLM_ENDPOINTS", ' [{"base_url": "http://a/v1"}]')
    assert env.json_list("LLM_ENDPOINTS") == [{"base_url": "http://a/v1"}]
    (tmp_path / "endpoints.json").write_text("[1]", encoding="utf-8")
    monkeypatch.setenv("LLM_ENDPOINTS", str(tmp_path / "endpoints.json"))
    assert env.json_list("LLM_ENDPOINTS") == [1]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[{"api_key": "secret"', "neither a list in JSON .* line 1"),
        ('{"api_key": "secret"}', "must be a list"),
        ("no/such/file", "neither a list in JSON nor the name of a file"),
    ],
)
def test_what_is_no_list_says_so_without_its_text(
    monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    monkeypatch.setenv("LLM_ENDPOINTS", text)
    with pytest.raises(ImproperlyConfigured, match=f"LLM_ENDPOINTS .*{reason}") as caught:
        env.json_list("LLM_ENDPOINTS")
    assert "secret" not in str(caught.value)


def test_an_object_stands_in_the_variable_or_in_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("MODEL_PRICES", raising=False)
    assert env.json_object("MODEL_PRICES") == {}
    monkeypatch.setenv("MODEL_PRICES", '{"m": {"input": 1}}')
    assert env.json_object("MODEL_PRICES") == {"m": {"input": 1}}
    (tmp_path / "prices.json").write_text('{"m": 2}')
    monkeypatch.setenv("MODEL_PRICES", str(tmp_path / "prices.json"))
    assert env.json_object("MODEL_PRICES") == {"m": 2}
    monkeypatch.setenv("MODEL_PRICES", "[1]")
    with pytest.raises(ImproperlyConfigured, match="MODEL_PRICES must be an object"):
        env.json_object("MODEL_PRICES")
