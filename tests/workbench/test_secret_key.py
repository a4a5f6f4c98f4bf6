import stat
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from workbench.secret_key import load_secret_key


def test_the_key_is_made_once_and_private(tmp_path: Path) -> None:
    key = load_secret_key(tmp_path / "var")
    assert len(key) >= 50
    assert load_secret_key(tmp_path / "var") == key
    assert stat.S_IMODE((tmp_path / "var" / "secret_key").stat().st_mode) == 0o600


def test_installations_have_different_keys(tmp_path: Path) -> None:
    assert load_secret_key(tmp_path / "a") != load_secret_key(tmp_path / "b")


def test_a_place_for_it_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ImproperlyConfigured, match=r"Not a directory\. WORKBENCH_VAR must name a folder"):
        load_secret_key(tmp_path / "file" / "var")
