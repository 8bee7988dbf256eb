"""The example file in the repository: complete and true."""

from pathlib import Path

import pytest
from pydantic.alias_generators import to_camel

from local_vector_search_mcp.config.example import example_text
from local_vector_search_mcp.config.layers import file_layer, scalar_keys
from local_vector_search_mcp.config.loader import load_config

EXAMPLE = Path(__file__).resolve().parents[3] / ".local-vector-search-mcp.example.yaml"


def test_example__is_what_the_models_say() -> None:
    """The committed file is the rendered one, so no default or line can fall behind."""
    assert EXAMPLE.read_text(encoding="utf-8") == example_text()


def test_example__loads_and_equals_the_defaults(tmp_path: Path) -> None:
    """Giving the example changes nothing."""
    with_example = load_config(config_file=EXAMPLE, environ={}, overrides={}, project_root=tmp_path)
    assert with_example == load_config(config_file=None, environ={}, overrides={}, project_root=tmp_path)


def test_example__has_every_key() -> None:
    """No key is left out, and each has a comment line right above it."""
    values = file_layer(EXAMPLE).values
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    for section, key in scalar_keys():
        assert key in values[section]
        at = [n for n, line in enumerate(lines) if line.startswith(f"  {to_camel(key)}:")]
        assert at
        assert all(lines[n - 1].startswith("  # ") for n in at)
    assert values["collections"] == ()


@pytest.mark.parametrize("commented_out", [False, True])
def test_example__commented_out_is_the_same(tmp_path: Path, commented_out: bool) -> None:
    """The file that ``init`` writes loads and changes nothing; taking the marks off gives the example."""
    text = example_text(commented_out=commented_out)
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    loaded = load_config(config_file=path, environ={}, overrides={}, project_root=tmp_path)
    assert loaded == load_config(config_file=None, environ={}, overrides={}, project_root=tmp_path)
    if commented_out:
        assert all(content == {} for section, content in file_layer(path).values.items() if section != "collections")
