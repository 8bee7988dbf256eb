"""The language of a book: guessed from its text where it is not given, and the few words that a book adds itself."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Final

_SAMPLE: Final = 60_000
_WORD: Final = re.compile(r"[^\W\d_]+")
_TAG: Final = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")
# Scripts that name a language well enough for type: which characters, and from what share of the letters on.
_SCRIPTS: Final = (
    ("ja", re.compile(r"[\u3040-\u30ff]"), 0.05),
    ("ko", re.compile(r"[\uac00-\ud7af]"), 0.2),
    ("zh", re.compile(r"[\u4e00-\u9fff\u3400-\u4dbf]"), 0.15),
    ("ru", re.compile(r"[\u0400-\u04ff]"), 0.4),
    ("el", re.compile(r"[\u0370-\u03ff]"), 0.4),
    ("he", re.compile(r"[\u0590-\u05ff]"), 0.4),
    ("ar", re.compile(r"[\u0600-\u06ff]"), 0.4),
    ("hi", re.compile(r"[\u0900-\u097f]"), 0.4),
    ("th", re.compile(r"[\u0e00-\u0e7f]"), 0.4),
)
# Short words that a page of the language cannot do without, and that the others mostly lack.
_COMMON_WORDS: Final = {
    "en": "the and of to is that with for this are was from",
    "de": "der die das und ist nicht ein eine mit auf für werden",
    "fr": "le la les des est dans pour une qui pas sur avec",
    "es": "el los las que una por para como más pero este se",
    "pt": "o os uma não para com que em mais como mas são",
    "it": "il che di della per una sono non con più gli nel",
    "nl": "de het een van niet voor met zijn dat ook wordt aan",
    "sv": "och att det som för inte med är på den av till",
    "pl": "nie się jest na to że z jak ale przez dla są",
    "cs": "je se na že to s jako pro ale jsou nebo byl",
}
_ABOVE_ENGLISH: Final = 1.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """The words that a book adds: the heading of its contents and of notes, and how it writes a page number."""

    contents: str
    notes: str
    page_before: str
    page_after: str = ""


_LABELS: Final = {
    "en": Labels(contents="Contents", notes="Notes", page_before="p. "),
    "de": Labels(contents="Inhalt", notes="Anmerkungen", page_before="S. "),
    "fr": Labels(contents="Table des matières", notes="Notes", page_before="p. "),
    "es": Labels(contents="Índice", notes="Notas", page_before="p. "),
    "pt": Labels(contents="Índice", notes="Notas", page_before="p. "),
    "it": Labels(contents="Indice", notes="Note", page_before="p. "),
    "nl": Labels(contents="Inhoud", notes="Noten", page_before="p. "),
    "sv": Labels(contents="Innehåll", notes="Noter", page_before="s. "),
    "pl": Labels(contents="Spis treści", notes="Przypisy", page_before="s. "),
    "cs": Labels(contents="Obsah", notes="Poznámky", page_before="s. "),
    "ru": Labels(contents="Содержание", notes="Примечания", page_before="с. "),
    "zh": Labels(contents="目录", notes="注释", page_before="第 ", page_after=" 页"),
    "ja": Labels(contents="目次", notes="注", page_before="", page_after=" ページ"),
    "ko": Labels(contents="차례", notes="주석", page_before="", page_after="쪽"),
}
# How languages are named by people who write them out.
_NAMES: Final = {"english": "en", "german": "de", "deutsch": "de", "french": "fr", "spanish": "es", "chinese": "zh"}


def guess_language(text: str) -> str:
    """The language of a text as a tag such as ``en``: by script, else by its most frequent short words."""
    sample = text[:_SAMPLE]
    letters = sum(map(str.isalpha, sample)) or 1
    for tag, characters, share in _SCRIPTS:
        if len(characters.findall(sample)) / letters >= share:
            return tag
    counts = Counter(word.lower() for word in _WORD.findall(sample))
    scores = {tag: sum(counts[word] for word in words.split()) for tag, words in _COMMON_WORDS.items()}
    best = max(scores, key=lambda tag: scores[tag])
    # English words stand in technical notes of every language, and English is what most code is described in.
    return best if scores[best] > scores["en"] * _ABOVE_ENGLISH and scores[best] >= 3 else "en"


def language_tag(given: str) -> str | None:
    """A language as given by a person, as a tag; ``None`` where it is none."""
    text = given.strip()
    named = _NAMES.get(text.lower())
    if named:
        return named
    return text.replace("_", "-") if _TAG.fullmatch(text) else None


def labels_for(tag: str) -> Labels:
    """The book's own words in a language; English where it is not known."""
    return _LABELS.get(tag.split("-")[0].lower(), _LABELS["en"])


def is_right_to_left(tag: str) -> bool:
    """Whether text of the language runs from right to left."""
    return tag.split("-")[0].lower() in {"ar", "fa", "he", "ur", "yi", "ps"}
