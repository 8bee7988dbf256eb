"""Provider ``ollama``: a local Ollama through its own client."""

from collections.abc import Sequence

import httpx
import ollama

from local_vector_search_mcp.embeddings.batching import Batcher, BatchSettings, RawVectors, UnreachableCallError
from local_vector_search_mcp.embeddings.endpoint_policy import EndpointRefusedError, make_transport
from local_vector_search_mcp.embeddings.http_calls import error_for_exception, error_for_status
from local_vector_search_mcp.embeddings.remote import RemoteProvider, RemoteSettings


class OllamaProvider(RemoteProvider):
    """Embeds through Ollama's ``/api/embed``, which cuts texts that are too long for the model itself."""

    name = "ollama"

    def __init__(self, settings: RemoteSettings, *, api_key: str | None = None) -> None:
        self._authorization = f"Bearer {api_key}" if api_key else None
        self._client = ollama.Client(
            host=settings.endpoint,
            timeout=settings.timeout_s,
            transport=make_transport(allow_remote=settings.allow_remote),
            trust_env=False,
            event_hooks={"request": [self._authorize]},
        )
        super().__init__(
            settings,
            Batcher(self._call, settings=BatchSettings(batch_size=settings.batch_size), dimensions=settings.dimensions),
        )

    def close(self) -> None:
        """Close the connections."""
        super().close()
        self._client.close()  # type: ignore[no-untyped-call]

    def _authorize(self, request: httpx.Request) -> None:
        # The client would send a key that it finds in the environment; only the configuration's may go out.
        request.headers.pop("authorization", None)
        if self._authorization is not None:
            request.headers["authorization"] = self._authorization

    def _call(self, texts: Sequence[str]) -> RawVectors:
        try:
            answer = self._client.embed(
                model=self.model, input=list(texts), truncate=True, dimensions=self._settings.dimensions
            )
        except ollama.ResponseError as error:
            raise error_for_status(error.status_code, body=str(error.error)[:2_000]) from error
        except (httpx.HTTPError, httpx.InvalidURL, EndpointRefusedError, OSError) as error:
            raise error_for_exception(error) from error
        except (ValueError, TypeError) as error:  # Broken JSON, or JSON of another shape.
            raise UnreachableCallError("its answer is not that of Ollama; check embedding.endpoint") from error
        return answer.embeddings
