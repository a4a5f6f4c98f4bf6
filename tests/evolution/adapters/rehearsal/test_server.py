"""The OpenAI face of the rehearsal model, through the real client."""

import http.client
import json
from urllib.parse import urlsplit

import openai
import pytest

from evolution.adapters.rehearsal.server import running

ASKED = [{"role": "user", "content": "多少钱"}]


def test_the_openai_client_gets_a_completion_and_the_models() -> None:
    with running() as base, openai.OpenAI(base_url=base, api_key="unused") as client:
        reply = client.chat.completions.create(
            model="rehearsal-policy", messages=[{"role": "user", "content": "你好"}]
        )
        assert reply.choices[0].message.content
        assert reply.usage is not None
        assert reply.usage.total_tokens > 0
        assert "rehearsal-judge" in {model.id for model in client.models.list()}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"model": "gpt-4o", "messages": ASKED}, 404),
        ({"model": "rehearsal-policy"}, 400),
        ({"model": "rehearsal-policy", "messages": ASKED, "stream": True}, 400),
    ],
)
def test_refuses_what_it_cannot_answer(body: dict[str, object], status: int) -> None:
    with running() as base:
        connection = http.client.HTTPConnection(urlsplit(base).netloc)
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        reply = connection.getresponse()
        told = json.loads(reply.read())
        connection.close()
    assert reply.status == status
    assert told["error"]["message"]
