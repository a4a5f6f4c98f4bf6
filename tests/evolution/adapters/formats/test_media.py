import base64
import hashlib
from typing import Any

import pytest

from evolution.adapters.formats.media import refer_to, replace_data

URL = "https://example.com/a.png"
BYTES = b"\x89PNG" * 40
BASE64 = base64.b64encode(BYTES).decode()
DIGEST = hashlib.sha256(BYTES).hexdigest()
IMAGE = f"[image: sha256:{DIGEST}, image/png, 160 bytes]"


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": URL, "detail": "high"}},
        {"type": "input_image", "image_url": URL},
        {"type": "image", "source": {"type": "url", "url": URL}},
        {"type": "image", "source": {"media_type": "image/png", "path": URL}},
        {"type": "image", "image": URL},
        {"type": "uri", "modality": "image", "uri": URL},
        {"file_data": {"mime_type": "image/png", "file_uri": URL}},
    ],
)
def test_an_image_elsewhere_is_its_address(part: dict[str, Any]) -> None:
    assert refer_to(part) == f"[image: {URL}]"


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{BASE64}"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": BASE64}},
        {"type": "image", "source_type": "base64", "mime_type": "image/png", "data": BASE64},
        {"type": "image", "image": BASE64, "mediaType": "image/png"},
        {"type": "blob", "modality": "image", "mime_type": "image/png", "content": BASE64},
        {"inline_data": {"mime_type": "image/png", "data": BASE64}},
        {"inlineData": {"mimeType": "image/png", "data": BASE64}},
    ],
)
def test_an_image_in_the_message_is_told_by_its_digest_and_never_kept(part: dict[str, Any]) -> None:
    assert refer_to(part) == IMAGE


def test_audio_and_files_are_references_too() -> None:
    sound = {"type": "input_audio", "input_audio": {"data": BASE64, "format": "wav"}}
    assert refer_to(sound) == f"[audio: sha256:{DIGEST}, wav, 160 bytes]"
    assert refer_to({"type": "file", "file": {"file_id": "file-1", "filename": "a.pdf"}}) == "[file: a.pdf]"


def test_data_urls_within_a_text_are_replaced() -> None:
    assert replace_data(f"see ![x](data:image/png;base64,{BASE64}) here") == f"see ![x]({IMAGE}) here"


def test_what_is_no_medium_has_no_reference() -> None:
    assert refer_to({"type": "text", "text": "hi"}) is None
    assert refer_to({"type": 7}) is None
