"""Provider ``openai-compatible``: any service with a ``/v1/embeddings`` endpoint."""

from collections.abc import Sequence
from typing import Any

import httpx

from local_vector_search_mcp.embeddings.batching import Batcher, BatchSettings, RawVectors, UnreachableCallError
from local_vector_search_mcp.embeddings.endpoint_policy import EndpointRefusedError, make_transport
from local_vector_search_mcp.embeddings.http_calls import error_for_exception, error_for_status
from local_vector_search_mcp.embeddings.remote import RemoteProvider, RemoteSettings


class OpenAiCompatibleProvider(RemoteProvider):
    """Embeds through ``POST <endpoint>/embeddings`` with the model's name and a list of inputs.

    Source: OpenAI API reference, "Create embeddings".
    """

    name = "openai-compatible"

    def __init__(self, settings: RemoteSettings, *, api_key: str | None = None) -> None:
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx.Client(
            transport=make_transport(allow_remote=settings.allow_remote),
            timeout=settings.timeout_s,
            headers=headers,
            follow_redirects=True,
            max_redirects=5,
            trust_env=False,
        )
        self._url = settings.endpoint.rstrip("/") + "/embeddings"
        # Only some models can shorten their vectors; servers of others refuse the parameter.
        self._sends_dimensions = settings.dimensions is not None
        super().__init__(
            settings,
            Batcher(self._call, settings=BatchSettings(batch_size=settings.batch_size), dimensions=settings.dimensions),
        )

    def close(self) -> None:
        """Close the connections."""
        super().close()
        self._client.close()

    def _call(self, texts: Sequence[str]) -> RawVectors:
        response = self._post(texts, with_dimensions=self._sends_dimensions)
        if self._sends_dimensions and response.status_code in (400, 422):
            response = self._post(texts, with_dimensions=False)
            if response.status_code == 200:
                self._sends_dimensions = False
        if response.status_code != 200:
            raise error_for_status(
                response.status_code, retry_after=response.headers.get("retry-after"), body=response.text[:2_000]
            )
        return _vectors(response, expected=len(texts))

    def _post(self, texts: Sequence[str], *, with_dimensions: bool) -> httpx.Response:
        body: dict[str, Any] = {"model": self.model, "input": list(texts), "encoding_format": "float"}
        if with_dimensions:
            body["dimensions"] = self._settings.dimensions
        try:
            return self._client.post(self._url, json=body)
        except (httpx.HTTPError, httpx.InvalidURL, EndpointRefusedError, OSError) as error:
            raise error_for_exception(error) from error


def _vectors(response: httpx.Response, *, expected: int) -> RawVectors:
    """The vectors of an answer in the order of the inputs, which ``index`` gives, not the list's order."""
    try:
        rows = response.json()["data"]
        by_place = {int(row.get("index", place)): row["embedding"] for place, row in enumerate(rows)}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreachableCallError("its answer is no list of embeddings; check embedding.endpoint") from error
    if sorted(by_place) != list(range(expected)):
        raise UnreachableCallError(f"it answered {len(by_place)} vectors for {expected} texts")
    return [by_place[place] for place in range(expected)]
