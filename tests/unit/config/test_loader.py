"""Precedence, refusals with their place, and what is never read."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from local_vector_search_mcp.config.layers import environment_name, scalar_keys
from local_vector_search_mcp.config.loader import find_project_root, load_config
from local_vector_search_mcp.config.models import Config
from local_vector_search_mcp.errors import ConfigError
from local_vector_search_mcp.scopes import Scope


def load(
    tmp_path: Path,
    text: str | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
) -> Config:
    file = None
    if text is not None:
        file = tmp_path / "settings.yaml"
        file.write_text(text, encoding="utf-8")
    return load_config(config_file=file, environ=environ or {}, overrides=options or {}, project_root=tmp_path)


def refusal(
    tmp_path: Path,
    text: str | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
) -> str:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text, environ=environ, options=options)
    assert "\n" not in caught.value.message
    return caught.value.message


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("serverr: {}", 1, ("serverr", "did you mean server?")),
        ("server:\n  nam: x", 2, ("server.nam", "did you mean name?")),
        ("server:\n  Name: x", 2, ("server.Name",)),
        ("search:\n\n  maxResults: 51", 3, ("search.maxResults", "at most 50")),
        ("search:\n  maxResults: 0", 2, ("search.maxResults", "at least 1")),
        ('search:\n  maxResults: "7"', 2, ("search.maxResults", "whole number")),
        ("search:\n  maxResults: 7.5", 2, ("search.maxResults", "whole number")),
        ("search:\n  maxResults: true", 2, ("search.maxResults", "whole number")),
        ("search:\n  maxResults: null", 2, ("search.maxResults", "whole number")),
        ("search:\n  lexicalWeight: .nan", 2, ("search.lexicalWeight", "number")),
        ("search:\n  lexicalWeight: 0\n  semanticWeight: 0", 1, ("lexicalWeight", "semanticWeight")),
        ("search:\n  defaultMode: fuzzy", 2, ("search.defaultMode", "'lexical'")),
        ("search:\n  stopWords: 3", 2, ("search.stopWords", "'auto'", "list")),
        ("search:\n  stopWords:\n    - a\n    - 1", 4, ("search.stopWords[1]", "text")),
        ("knowledgeBase:\n  allowWrites: yes", 2, ("knowledgeBase.allowWrites", "true or false")),
        ("knowledgeBase:\n  include: notes/*.md", 2, ("knowledgeBase.include", "list")),
        ("knowledgeBase:\n  include: []", 2, ("knowledgeBase.include", "at least one item")),
        ("knowledgeBase:\n  scope: write", 2, ("knowledgeBase.scope", "'edit'")),
        ("knowledgeBase:\n  root: 2024-01-01", 2, ("knowledgeBase.root", "text")),
        ("knowledgeBase:\n  allowWrites: true\n  allow_writes: true", 3, ("twice",)),
        ("knowledgeBase:\n  root: a\n  root: b", 3, ("'root'", "twice")),
        ("knowledgeBase:\n  root: ''", 2, ("knowledgeBase.root", "not empty")),
        ("knowledgeBase: docs", 1, ("knowledgeBase", "section")),
        ("knowledgeBases:\n  - root: docs", 1, ("knowledgeBases", "knowledgeBase:", "collections:")),
        ("knowledge_bases: []", 1, ("knowledgeBase:",)),
        ("http:\n  port: 65536", 2, ("http.port", "65535")),
        ("http:\n  path: mcp", 2, ("http.path",)),
        ("http:\n  path: /healthz", 2, ("http.path", "/healthz")),
        ("http:\n  tokenEnv: A B", 2, ("http.tokenEnv",)),
        ("collections: docs", 1, ("collections", "list")),
        ("collections:\n  - docs", 2, ("collections",)),
        ("collections:\n  - name: a", 2, ("collections[0].root", "needed")),
        ("collections:\n  - name: Project\n    root: x", 2, ("collections[0].name", "reserved")),
        ("collections:\n  - {name: a, root: x}\n  - {name: A, root: y}", 1, ("collections", "'A'")),
        ("collections:\n  - name: a/b\n    root: x", 2, ("collections[0].name",)),
        ("collections:\n  - name: a\n    rot: x", 3, ("collections[0].rot", "did you mean root?")),
        ("server:\n  name: !tag x", 2, ("tags",)),
        ("server: !tag {}", 1, ("tags",)),
        ("collections: !!python/tuple []", 1, ("tags",)),
        ("1: x", 1, ("not a text",)),
        ("- a", 1, ("sections",)),
        ("server: [", 1, ()),
    ],
)
def test_file__refused_with_line_and_key(tmp_path: Path, text: str, line: int, words: tuple[str, ...]) -> None:
    """A wrong file is refused with its name, the line and the key."""
    message = refusal(tmp_path, text)
    assert message.startswith(f"{tmp_path / 'settings.yaml'}, line {line}: ")
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    "text",
    ["", "# nothing\n", "server:\n", "server: {}\n", "\ufeffserver: {}\n", "collections: []\n"],
)
def test_file__empty_is_complete(tmp_path: Path, text: str) -> None:
    """Every key has a default, so files that say nothing are good files."""
    assert load(tmp_path, text) == load(tmp_path)


@pytest.mark.parametrize("key", ["allowWrites", "allow_writes"])
def test_file__both_spellings(tmp_path: Path, key: str) -> None:
    """Keys are camelCase, and snake_case is accepted."""
    assert load(tmp_path, f"knowledgeBase:\n  {key}: true\n").knowledge_base.allow_writes


def test_file__yaml_anchors_and_merges(tmp_path: Path) -> None:
    """Ordinary YAML works: anchors, aliases, merge keys, flow style."""
    text = (
        "collections:\n  - &a {name: a, root: x, include: ['*.md']}\n  - {<<: *a, name: b}\n"
        "embedding: {timeoutSeconds: 5}\n"
    )
    config = load(tmp_path, text)
    assert [(c.name, c.root, c.include) for c in config.collections] == [("a", "x", ("*.md",)), ("b", "x", ("*.md",))]
    assert config.embedding.timeout_seconds == 5.0


def test_file__secret_is_not_repeated(tmp_path: Path) -> None:
    """A refusal never shows the value it refuses, and a loaded key does not print."""
    assert "hunter2" not in refusal(tmp_path, "embedding:\n  apiKey: [hunter2]\n")
    assert "hunter2" not in refusal(tmp_path, "embedding:\n  apiKey: hunter2\n  apiKey: hunter2\n")
    assert "hunter2" not in refusal(tmp_path, "embedding:\n  apiKey: hunter2\n  nope: 1\n")
    assert "hunter2" not in repr(load(tmp_path, "embedding:\n  apiKey: hunter2\n"))


def test_file__unreadable(tmp_path: Path) -> None:
    """A file that is absent, a directory, or not UTF-8 is refused by name."""
    for path in (tmp_path / "absent.yaml", tmp_path):
        with pytest.raises(ConfigError, match=path.name):
            load_config(config_file=path, environ={}, overrides={}, project_root=tmp_path)
    bad = tmp_path / "bad.yaml"
    bad.write_bytes(b"server:\n  name: \xff\n")
    with pytest.raises(ConfigError, match="line 2: not UTF-8"):
        load_config(config_file=bad, environ={}, overrides={}, project_root=tmp_path)


def test_file__alias_inside_itself(tmp_path: Path) -> None:
    """A file that would never end is refused."""
    assert "alias" in refusal(tmp_path, "server: &a\n  name: *a\n")


def test_file__several_problems_in_one_line(tmp_path: Path) -> None:
    """What is wrong is told together, each with its line."""
    message = refusal(tmp_path, "search:\n  maxResults: 99\n  rrfK: 0\nhttp:\n  port: -1\n  path: x\n")
    assert "line 2" in message
    assert "line 3" in message
    assert "(and 1 more)" in message


@pytest.mark.parametrize("name", ["settings.yaml", ".local-vector-search-mcp.yaml", "config.yaml", ".env"])
def test_project__nothing_is_loaded_by_itself(tmp_path: Path, name: str) -> None:
    """A cloned repository cannot switch anything on: no file is looked for."""
    (tmp_path / name).write_text("knowledgeBase:\n  allowWrites: true\n", encoding="utf-8")
    assert load(tmp_path).scope is Scope.READ


@pytest.mark.parametrize(
    ("variable", "text", "attribute", "value"),
    [
        ("KNOWLEDGE_BASE__ALLOW_WRITES", "true", "knowledge_base.allow_writes", True),
        ("KNOWLEDGE_BASE__ALLOW_WRITES", "0", "knowledge_base.allow_writes", False),
        ("KNOWLEDGE_BASE__INCLUDE", '["a/**"]', "knowledge_base.include", ("a/**",)),
        ("KNOWLEDGE_BASE__ROOT", "docs", "knowledge_base.root", "docs"),
        ("SEARCH__RRF_K", "7", "search.rrf_k", 7),
        ("SEARCH__STOP_WORDS", "auto", "search.stop_words", "auto"),
        ("SEARCH__STOP_WORDS", '["the"]', "search.stop_words", ("the",)),
        ("SEARCH__LEXICAL_WEIGHT", "0.5", "search.lexical_weight", 0.5),
        ("SEARCH__LEXICAL_WEIGHT", "null", "search.lexical_weight", None),
        ("INDEX__WRITE_WAIT_MS", "0", "index.write_wait_ms", 0),
        ("EMBEDDING__PROVIDER", "none", "embedding.provider", "none"),
        ("EMBEDDING__QUERY_PREFIX", "", "embedding.query_prefix", ""),
        ("SERVER__LOG_LEVEL", "DEBUG", "server.log_level", "debug"),
        ("HTTP__TOKEN_ENV", "TOKEN", "http.token_env", "TOKEN"),
    ],
)
def test_environment__value(tmp_path: Path, variable: str, text: str, attribute: str, value: object) -> None:
    """A variable gives its key, read as the key's type."""
    config = load(tmp_path, environ={f"LVS_MCP_{variable}": text})
    section, _, key = attribute.partition(".")
    assert getattr(getattr(config, section), key) == value


@pytest.mark.parametrize(
    ("variable", "text", "words"),
    [
        ("KNOWLEDGE_BASE__ALOW_WRITES", "true", "did you mean LVS_MCP_KNOWLEDGE_BASE__ALLOW_WRITES?"),
        ("TOKEN", "x", "not a setting; docs/configuration.md"),
        ("KNOWLEDGE_BASE_ALLOW_WRITES", "true", "not a setting"),
        ("COLLECTIONS", "[]", "file only"),
        ("COLLECTIONS__NAME", "[]", "file only"),
        ("KNOWLEDGE_BASE__ALLOW_WRITES", "maybe", "true or false"),
        ("KNOWLEDGE_BASE__ALLOW_WRITES", "", "true or false"),
        ("KNOWLEDGE_BASE__INCLUDE", "a.md", "JSON list"),
        ("KNOWLEDGE_BASE__INCLUDE", "[1]", "text"),
        ("KNOWLEDGE_BASE__SCOPE", "all", "'read', 'edit' or 'full'"),
        ("SEARCH__MAX_RESULTS", "many", "whole number"),
        ("SEARCH__MAX_RESULTS", "51", "at most 50"),
        ("EMBEDDING__TIMEOUT_SECONDS", "inf", "number"),
    ],
)
def test_environment__refused_by_name(tmp_path: Path, variable: str, text: str, words: str) -> None:
    """A wrong variable is refused by its name."""
    message = refusal(tmp_path, environ={f"LVS_MCP_{variable}": text})
    assert f"LVS_MCP_{variable}" in message
    assert words in message


def test_environment__secret_variable_may_bear_the_prefix(tmp_path: Path) -> None:
    """The variable that a setting names holds a secret and is no setting."""
    environ = {"LVS_MCP_HTTP__TOKEN_ENV": "LVS_MCP_SECRET", "LVS_MCP_SECRET": "x"}
    assert load(tmp_path, environ=environ).http.token_env == "LVS_MCP_SECRET"
    text = "embedding:\n  apiKeyEnv: LVS_MCP_SECRET\n"
    assert load(tmp_path, text, environ={"LVS_MCP_SECRET": "x"}).embedding.api_key_env == "LVS_MCP_SECRET"


def test_environment__foreign_variables_are_ignored(tmp_path: Path) -> None:
    """Only the prefix is ours."""
    assert load(tmp_path, environ={"PATH": "x", "LVS_TEST_DATA": "y", "FASTMCP_PORT": "1"}) == load(tmp_path)


def test_environment__names_are_unique() -> None:
    """Every key has one variable, and no two keys share one."""
    names = [environment_name(section, key) for section, key in scalar_keys()]
    assert len(names) == len(set(names))
    assert "LVS_MCP_KNOWLEDGE_BASE__ALLOW_WRITES" in names


def test_precedence__later_layers_win_key_by_key(tmp_path: Path) -> None:
    """Defaults, file, environment, command line; a layer replaces single keys, lists as a whole."""
    text = "search: {maxResults: 1, rrfK: 1, maxPerDocument: 1}\nknowledgeBase: {include: [a, b]}\n"
    environ = {"LVS_MCP_SEARCH__MAX_RESULTS": "2", "LVS_MCP_SEARCH__RRF_K": "2", "LVS_MCP_EMBEDDING__MODEL": "m"}
    config = load(tmp_path, text, environ=environ, options={"--include": ("c",), "--embedding-model": "n"})
    assert (config.search.max_results, config.search.rrf_k, config.search.max_per_document) == (2, 2, 1)
    assert config.knowledge_base.include == ("c",)
    assert config.embedding.model == "n"
    assert config.search.lexical_candidate_pool_size == 50


def test_precedence__an_overridden_mistake_is_still_refused(tmp_path: Path) -> None:
    """A wrong value does not hide behind a layer that wins over it."""
    message = refusal(tmp_path, "knowledgeBase:\n  scope: all\n", options={"--scope": "read"})
    assert "line 2" in message


def test_option__refused_by_name(tmp_path: Path) -> None:
    """A wrong option value is refused by the option's name."""
    assert refusal(tmp_path, options={"--scope": "all"}).startswith("Option --scope: knowledgeBase.scope: ")


@pytest.mark.parametrize(
    ("text", "environ", "options", "scope"),
    [
        (None, {}, {}, Scope.READ),
        ("knowledgeBase: {allowWrites: true}", {}, {}, Scope.FULL),
        (None, {}, {"--allow-writes": True}, Scope.FULL),
        ("knowledgeBase: {scope: edit}", {}, {}, Scope.EDIT),
        ("knowledgeBase: {scope: read, allowWrites: true}", {}, {}, Scope.READ),
        ("knowledgeBase: {scope: read}", {}, {"--allow-writes": True}, Scope.READ),
        ("knowledgeBase: {scope: read}", {"LVS_MCP_KNOWLEDGE_BASE__SCOPE": "edit"}, {}, Scope.EDIT),
        ("knowledgeBase: {scope: read}", {"LVS_MCP_KNOWLEDGE_BASE__SCOPE": "edit"}, {"--scope": "full"}, Scope.FULL),
        (None, {"LVS_MCP_KNOWLEDGE_BASE__ALLOW_WRITES": "true"}, {"--scope": "read"}, Scope.READ),
    ],
)
def test_scope__precedence(
    tmp_path: Path, text: str | None, environ: Mapping[str, str], options: Mapping[str, object], scope: Scope
) -> None:
    """A given scope wins over allowWrites, whichever layer gives either."""
    assert load(tmp_path, text, environ=environ, options=options).scope is scope


def test_scope__order() -> None:
    """Each scope holds what the one before it holds."""
    allowed = {(a.value, b.value) for a in Scope for b in Scope if a.allows(b)}
    assert allowed == {
        ("read", "read"),
        ("edit", "read"),
        ("edit", "edit"),
        ("full", "read"),
        ("full", "edit"),
        ("full", "full"),
    }


def test_project_root__order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The option, then CLAUDE_PROJECT_DIR, then the working directory; links are resolved once."""
    a, b, c = (tmp_path / name for name in "abc")
    for path in (a, b, c):
        path.mkdir()
    (tmp_path / "link").symlink_to(a)
    monkeypatch.chdir(c)
    environ = {"CLAUDE_PROJECT_DIR": str(b)}
    assert find_project_root(tmp_path / "link", environ) == a.resolve()
    assert find_project_root(None, environ) == b.resolve()
    assert find_project_root(None, {}) == c.resolve()
    assert find_project_root(Path("../a"), environ) == a.resolve()


@pytest.mark.parametrize("name", ["absent", "file"])
def test_project_root__refused(tmp_path: Path, name: str) -> None:
    """A root that is no directory is refused, and its source named."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match="--project-root"):
        find_project_root(tmp_path / name, {})
    with pytest.raises(ConfigError, match="CLAUDE_PROJECT_DIR"):
        find_project_root(None, {"CLAUDE_PROJECT_DIR": str(tmp_path / name)})


def test_relative_paths__start_at_the_project_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at the working directory; absolute ones stay."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    absolute = str(tmp_path / "notes")
    config = load(tmp_path, "knowledgeBase: {root: docs}\ncollections: [{name: a, root: ../a}]\n")
    assert config.root == tmp_path / "docs"
    assert config.collection_root(config.collections[0]) == tmp_path / "../a"
    assert load(tmp_path, options={"--root": absolute}).root == Path(absolute)


def test_config_file__relative_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative name is looked up in the working directory, then in the project root."""
    project, cwd = tmp_path / "project", tmp_path / "cwd"
    for path, most in ((project, 3), (cwd, 4)):
        path.mkdir()
        (path / "s.yaml").write_text(f"search: {{maxResults: {most}}}\n", encoding="utf-8")
    monkeypatch.chdir(cwd)

    def results() -> int:
        config = load_config(config_file=Path("s.yaml"), environ={}, overrides={}, project_root=project)
        return config.search.max_results

    assert results() == 4
    (cwd / "s.yaml").unlink()
    assert results() == 3
