"""Tools of kind http: one request to a service that speaks JSON."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import httpx2

from harness_repo.format.placeholders import PlaceholderError, fill_query, fill_url, fill_value
from harness_repo.format.tools import Tool
from harness_repo.runtime.access import AccessDenied, ToolAccess, origin_of
from harness_repo.runtime.json_text import read_json
from harness_repo.runtime.sources.failure import Code, ToolFailure
from harness_repo.runtime.sources.network import build_client

MOST_REDIRECTS = 3
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})

_CODES: dict[int, Code] = {
    400: "bad_arguments",
    401: "permission_denied",
    403: "permission_denied",
    404: "not_found",
    408: "timeout",
    410: "not_found",
    422: "bad_arguments",
    504: "timeout",
}


class HttpSource:
    """Makes the HTTP requests of one run over one client."""

    def __init__(self, access: ToolAccess) -> None:
        self._access = access
        self._client: httpx2.AsyncClient | None = None

    async def call(self, tool: Tool, arguments: Mapping[str, Any]) -> object:
        """The JSON of the service's answer, None for an empty one. Raises ToolFailure and AccessDenied."""
        if self._client is None:
            self._client = build_client(self._access)
        try:
            request = self._build(self._client, tool.source, arguments)
            response = await _send(self._client, request)
        except PlaceholderError as failure:
            raise ToolFailure("bad_arguments", str(failure)) from failure
        except httpx2.TimeoutException as failure:
            raise ToolFailure("timeout", type(failure).__name__) from failure
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, ValueError) as failure:
            raise ToolFailure("connection", f"{type(failure).__name__}: {failure}") from failure
        return _read(response)

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    def _build(
        self, client: httpx2.AsyncClient, source: Mapping[str, Any], arguments: Mapping[str, Any]
    ) -> httpx2.Request:
        method = source.get("method", "GET")
        url = httpx2.URL(fill_url(source["url"], arguments))
        query = fill_query(source.get("query", {}), arguments)
        if query:
            url = url.copy_merge_params(httpx2.QueryParams(query))
        headers = self._access.fill_headers(source.get("headers", {}), str(url))
        headers = {"Accept": "application/json", **headers}
        if "body" not in source and method not in _WITH_BODY:
            return client.build_request(method, url, headers=headers)
        body = fill_value(source["body"], arguments) if "body" in source else dict(arguments)
        return client.build_request(method, url, headers=headers, json=body)


async def _send(client: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
    """The answer, after redirects inside one host; the headers of a request go nowhere else."""
    for _ in range(MOST_REDIRECTS + 1):
        response = await client.send(request)
        if response.next_request is None:
            return response
        if _origin(response.next_request) != _origin(request):
            raise ToolFailure("server_error", "the service redirects to another host")
        request = response.next_request
    raise ToolFailure("server_error", f"more than {MOST_REDIRECTS} redirects")


def _origin(request: httpx2.Request) -> str:
    try:
        return origin_of(str(request.url))
    except AccessDenied:
        return ""


def _read(response: httpx2.Response) -> object:
    status = response.status_code
    if not response.is_success:
        code = _CODES.get(status, "server_error")
        # What was wrong with the arguments is for the model to mend; a broken server's page is for nobody.
        said = response.text if code == "bad_arguments" else ""
        raise ToolFailure(code, f"{status} {_phrase(status)} {said}")
    if not response.content.strip():
        return None
    try:
        return read_json(response.content.decode("utf-8-sig"))
    except ValueError as failure:
        raise ToolFailure("malformed_result", f"not JSON: {failure}") from failure


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "unknown status"
