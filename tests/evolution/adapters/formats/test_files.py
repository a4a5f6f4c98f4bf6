import gzip
import io
import os
import sys
import zipfile
from pathlib import Path

import pytest

from evolution.adapters.formats import files
from evolution.adapters.formats.content import failure_of, find_encoding
from evolution.adapters.formats.files import File, open_path, open_upload

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LINE = b'{"request": "hi"}\n'


def takes_none(names: list[str]) -> bool:
    return False


def contents(path: Path) -> dict[str, bytes | str]:
    """Name -> content, or why it can't be had."""
    found: dict[str, bytes | str] = {}
    for file in open_path(path, takes_none):
        found[file.name] = file.failure or read(file)
    return found


def read(file: File) -> bytes:
    with file.open_text() as content:
        return content.read()


def archive(**members: bytes) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    return data.getvalue()


PACKED = {
    "plain": LINE,
    "gz": gzip.compress(LINE),
    "gz in two members": gzip.compress(LINE[:5]) + gzip.compress(LINE[5:]),
    "zst": zstd.compress(LINE),
    "gz in gz": gzip.compress(gzip.compress(LINE)),
    "UTF-8 with a mark": b"\xef\xbb\xbf" + LINE,
    "UTF-16": LINE.decode().encode("utf-16"),
    "UTF-16 without a mark": LINE.decode().encode("utf-16-le"),
    "UTF-16, big end first": LINE.decode().encode("utf-16-be"),
    "UTF-32": LINE.decode().encode("utf-32"),
    "UTF-16 in gz": gzip.compress(LINE.decode().encode("utf-16")),
}


@pytest.mark.parametrize("packing", PACKED)
def test_content_is_unpacked_by_what_it_is(tmp_path: Path, packing: str) -> None:
    (tmp_path / "cases.data").write_bytes(PACKED[packing])
    assert contents(tmp_path / "cases.data") == {"cases.data": LINE}


def test_members_of_an_archive_are_files_of_their_own(tmp_path: Path) -> None:
    inner = archive(**{"c.json": b"[3]"})
    members = {"a.jsonl": b"1", "d/b.json.gz": gzip.compress(b"2"), "e.zip": inner, "../f.json": b"4"}
    hidden = {"__MACOSX/a.jsonl": b"x", ".hidden.json": b"x", "d/": b""}
    (tmp_path / "all.zip").write_bytes(archive(**members, **hidden))
    assert contents(tmp_path / "all.zip") == {
        "all.zip/a.jsonl": b"1",
        "all.zip/d/b.json.gz": b"2",
        "all.zip/e.zip/c.json": b"[3]",
        "all.zip/../f.json": b"4",
    }


def test_the_contents_of_an_archive_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.zip").write_bytes(archive(**{f"{n}.jsonl": LINE for n in range(50)}))
    opened = []

    real = zipfile.ZipFile._RealGetContents  # type: ignore[attr-defined]  # what reads them

    def count(self: object) -> None:
        opened.append(1)
        real(self)

    monkeypatch.setattr(files, "zipfile", zipfile)
    monkeypatch.setattr(zipfile.ZipFile, "_RealGetContents", count)
    assert set(contents(tmp_path / "a.zip").values()) == {LINE}
    assert len(opened) == 1


def test_a_folder_is_walked_in_order(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a/2.json", "a/1.csv", "notes.txt", ".git/x.json", "a/.y.json"):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(LINE)
    (tmp_path / "in" / "loop").symlink_to(tmp_path / "in")
    (tmp_path / "in" / "notes.txt").write_text("what this is")
    (tmp_path / "in" / "log.txt").write_text(" {}")
    found = list(open_path(tmp_path / "in", takes_none))
    assert [file.name for file in found] == [
        "in/b.jsonl",
        "in/log.txt",
        "in/notes.txt",
        "in/a/1.csv",
        "in/a/2.json",
    ]
    assert [file.name for file in found if file.is_doubtful] == ["in/log.txt", "in/notes.txt"]


def test_an_archive_that_a_format_takes_is_left_whole(tmp_path: Path) -> None:
    (tmp_path / "x.eval").write_bytes(archive(**{"header.json": b"{}"}))
    (file,) = open_path(tmp_path / "x.eval", lambda names: "header.json" in names)
    with file.opener() as stream:
        assert zipfile.ZipFile(stream).namelist() == file.members == ["header.json"]


def test_stems_are_the_same_however_a_file_is_packed(tmp_path: Path) -> None:
    names = ("run.json", "run.json.gz", "a/run.json", "run.jsonl.zst", "run")
    assert {File(name, lambda: tmp_path.open("rb")).stem for name in names} == {"run"}


def test_names_in_archives_from_china_are_readable(tmp_path: Path) -> None:
    data = archive(**{"XXXX.jsonl": LINE}).replace(b"XXXX", "弹幕".encode("gb18030"))
    (tmp_path / "a.zip").write_bytes(data)
    assert list(contents(tmp_path / "a.zip")) == ["a.zip/弹幕.jsonl"]


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress])
def test_what_came_before_a_break_is_kept(tmp_path: Path, pack: "type[bytes]") -> None:
    lines = b"".join(b'{"request": "%d"}\n' % n for n in os.urandom(200_000))
    (tmp_path / "cut").write_bytes(pack(lines)[:-1000])
    (file,) = open_path(tmp_path / "cut", takes_none)
    with file.open_text() as content:
        kept = content.read()
        assert failure_of(content)
    assert lines.startswith(kept)
    assert len(kept) > len(lines) * 0.9


@pytest.mark.parametrize("content", [b"\x1f\x8bjunk", b"\x28\xb5\x2f\xfdjunk", b"PK\x03\x04junk"])
def test_a_broken_file_says_so_and_costs_no_other(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    (tmp_path / "b.json").write_bytes(LINE)
    found = contents(tmp_path)
    assert found[f"{tmp_path.name}/b.json"] == LINE
    assert found[f"{tmp_path.name}/a.json"] in {
        b"",
        *(text for text in found.values() if isinstance(text, str)),
    }


def test_what_unpacks_to_far_more_breaks_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "SMALL_BYTES", 100_000)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b" " * 10_000_000))
    (file,) = open_path(tmp_path / "bomb.gz", takes_none)
    with file.open_text() as content:
        # 200 times what it is packed in, and not ten megabytes.
        assert len(content.read()) < 3_000_000
        assert failure_of(content)


def test_packing_without_end_is_refused(tmp_path: Path) -> None:
    data = LINE
    for _layer in range(6):
        data = gzip.compress(data)
    (tmp_path / "x.gz").write_bytes(data)
    assert contents(tmp_path / "x.gz") == {"x.gz": "packed too many times"}


def test_an_upload_stays_open_and_can_be_read_again() -> None:
    stream = io.BytesIO(gzip.compress(LINE))
    for _time in range(2):
        (file,) = open_upload(stream, "x.gz", takes_none)
        assert read(file) == LINE
    assert not stream.closed


def test_broken_utf16_breaks_off(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(LINE.decode().encode("utf-16") + b"x")
    (file,) = open_path(tmp_path / "x", takes_none)
    with file.open_text() as content:
        assert content.read() == LINE
        assert "UTF-16" in failure_of(content)


@pytest.mark.parametrize("head", [b"{}", b"", b"{", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "问题".encode()])
def test_other_beginnings_have_no_encoding(head: bytes) -> None:
    assert find_encoding(head) == ("", 0)
