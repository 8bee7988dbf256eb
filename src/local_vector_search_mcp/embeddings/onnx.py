"""Provider ``local`` with a folder as its model: an ONNX sentence-embedding model run in this process.

Source: Reimers and Gurevych, "Sentence-BERT", EMNLP 2019 (mean pooling over token vectors).
"""

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from local_vector_search_mcp.embeddings.prefixes import prefixes_for
from local_vector_search_mcp.embeddings.provider import Embedding, EmbeddingFailure, to_embedding
from local_vector_search_mcp.errors import EmbeddingUnavailable

_MODEL_FILES = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
_DEFAULT_MOST_TOKENS = 256
_BATCH = 8
# A long text is embedded in windows whose vectors are averaged; more of them would only slow indexing down.
_MOST_WINDOWS = 4


class OnnxProvider:
    """Embeds with a model folder that holds ``model.onnx`` and ``tokenizer.json``.

    ``sentence_bert_config.json`` (``max_seq_length``) and ``1_Pooling/config.json`` are heeded where they stand
    in the folder. The model is loaded at the first use.
    """

    name = "local"

    def __init__(self, folder: Path, *, query_prefix: str | None = None, document_prefix: str | None = None) -> None:
        self._folder = folder
        known = prefixes_for(folder.name)
        self._query_prefix = known.query if query_prefix is None else query_prefix
        self._document_prefix = known.document if document_prefix is None else document_prefix
        self._lock = threading.Lock()
        self._loaded_model: _OnnxModel | None = None
        self._dimensions: int | None = None

    @property
    def model(self) -> str:
        """The folder, as the index manifest records it."""
        return self._folder.as_posix()

    @property
    def dimensions(self) -> int | None:
        """The length of the vectors, once one has been made."""
        return self._dimensions

    def embed_documents(self, texts: Sequence[str]) -> list[Embedding | EmbeddingFailure]:
        """Embed texts of documents; see ``EmbeddingProvider``."""
        return self._embed([self._document_prefix + text for text in texts])

    def embed_query(self, text: str) -> Embedding:
        """Embed a search query; see ``EmbeddingProvider``."""
        result = self._embed([self._query_prefix + text])[0]
        if isinstance(result, EmbeddingFailure):
            raise EmbeddingUnavailable(f"The query cannot be embedded: {result.reason}. Search with mode lexical.")
        return result

    def check(self) -> None:
        """Load the model and embed one word; see ``EmbeddingProvider``."""
        self.embed_query("check")

    def close(self) -> None:
        """Let go of the model."""
        with self._lock:
            self._loaded_model = None

    def _embed(self, texts: Sequence[str]) -> list[Embedding | EmbeddingFailure]:
        model = self._load()
        try:
            vectors = model.embed(texts)
        except (RuntimeError, ValueError) as error:
            raise EmbeddingUnavailable(f"The model in embedding.model failed ({type(error).__name__}).") from error
        results = [to_embedding(vector, dimensions=self._dimensions) for vector in vectors]
        first = next((result for result in results if isinstance(result, Embedding)), None)
        if first is not None and self._dimensions is None:
            self._dimensions = first.dimensions
        return results

    def _load(self) -> "_OnnxModel":
        with self._lock:
            if self._loaded_model is None:
                self._loaded_model = _OnnxModel.load(self._folder)
            return self._loaded_model


class _OnnxModel:
    """A session and its tokenizer, loaded."""

    def __init__(self, session: Any, tokenizer: Any, *, most_tokens: int, pooling: str) -> None:
        self._session = session
        self._tokenizer = tokenizer
        self._most_tokens = most_tokens
        self._pooling = pooling
        self._inputs = {entry.name for entry in session.get_inputs()}

    @classmethod
    def load(cls, folder: Path) -> "_OnnxModel":
        """Load the model in a folder.

        Raises:
            EmbeddingUnavailable: A library or a file is missing, or a file cannot be read as what it should be.
        """
        model_file = next((folder / name for name in _MODEL_FILES if (folder / name).is_file()), None)
        tokenizer_file = folder / "tokenizer.json"
        if model_file is None or not tokenizer_file.is_file():
            raise EmbeddingUnavailable(
                f"The folder {folder} (embedding.model) needs model.onnx and tokenizer.json; one is missing."
            )
        try:
            import onnxruntime
            import tokenizers
        except ImportError as error:
            raise EmbeddingUnavailable(
                "A folder as embedding.model needs the extra 'onnx': install local-vector-search-mcp[onnx]."
            ) from error
        try:
            options: Any = cast("Any", onnxruntime).SessionOptions()
            options.log_severity_level = 4
            session = onnxruntime.InferenceSession(
                str(model_file), sess_options=options, providers=["CPUExecutionProvider"]
            )
            tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_file))
        except Exception as error:
            raise EmbeddingUnavailable(
                f"The model in {folder} cannot be loaded ({type(error).__name__}); check embedding.model."
            ) from error
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return cls(session, tokenizer, most_tokens=_most_tokens(folder), pooling=_pooling(folder))

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector per text; a long text's is the mean of its windows' vectors."""
        windows: list[tuple[int, list[int]]] = []
        for place, text in enumerate(texts):
            windows.extend((place, ids) for ids in self._windows(text))
        windows.sort(key=lambda window: len(window[1]))
        import numpy as np

        sums: dict[int, Any] = {}
        for start in range(0, len(windows), _BATCH):
            batch = windows[start : start + _BATCH]
            for (place, ids), vector in zip(batch, self._run([ids for _, ids in batch]), strict=True):
                share = vector / max(float(np.linalg.norm(vector)), 1e-12) * len(ids)
                sums[place] = sums[place] + share if place in sums else share
        return [sums[place].tolist() for place in range(len(texts))]

    def _windows(self, text: str) -> list[list[int]]:
        """The token ids of a text in windows that the model can take, special tokens included."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        special: list[int] = self._tokenizer.encode("", add_special_tokens=True).ids
        before, after = special[: len(special) // 2], special[len(special) // 2 :]
        room = self._most_tokens - len(special)
        count = min(max(1, -(-len(ids) // room)), _MOST_WINDOWS)
        return [before + ids[number * room : (number + 1) * room] + after for number in range(count)]

    def _run(self, batch: Sequence[list[int]]) -> Any:
        import numpy as np

        longest = max(len(ids) for ids in batch)
        input_ids = np.zeros((len(batch), longest), dtype=np.int64)
        mask = np.zeros((len(batch), longest), dtype=np.int64)
        for row, ids in enumerate(batch):
            input_ids[row, : len(ids)] = ids
            mask[row, : len(ids)] = 1
        feed = {"input_ids": input_ids, "attention_mask": mask, "token_type_ids": np.zeros_like(input_ids)}
        output = self._session.run(None, {name: feed[name] for name in self._inputs if name in feed})[0]
        if output.ndim == 2:
            return output  # The model pools by itself.
        if self._pooling == "cls":
            return output[:, 0, :]
        weights = mask[:, :, None].astype(output.dtype)
        return (output * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1.0)


def _most_tokens(folder: Path) -> int:
    value = _read_json(folder / "sentence_bert_config.json").get("max_seq_length")
    return value if isinstance(value, int) and 8 <= value <= 8192 else _DEFAULT_MOST_TOKENS


def _pooling(folder: Path) -> str:
    return "cls" if _read_json(folder / "1_Pooling" / "config.json").get("pooling_mode_cls_token") is True else "mean"


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
