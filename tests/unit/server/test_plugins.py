"""Plugins: the manifests register the server, and carry the skill that the server itself serves."""

import json
from pathlib import Path
from typing import Any, cast

import pytest
from ruamel.yaml import YAML

from local_vector_search_mcp import __version__
from local_vector_search_mcp.server.packaged_skills import SKILLS
from local_vector_search_mcp.server.tools.catalogue import all_tools

REPOSITORY = Path(__file__).resolve().parents[3]
PLUGIN = REPOSITORY / "plugins" / "kb"
MANIFESTS = (".claude-plugin/plugin.json", ".codex-plugin/plugin.json")


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_plugins__manifests(manifest: str) -> None:
    """Each client's manifest names the plugin and the version of the package."""
    found = load(PLUGIN / manifest)
    assert found["name"] == "kb"
    assert found["version"] == __version__
    assert found["description"]
    for key in ("skills", "mcpServers"):
        if key in found:
            assert (PLUGIN / found[key]).exists()


@pytest.mark.parametrize("marketplace", [".claude-plugin/marketplace.json", ".agents/plugins/marketplace.json"])
def test_plugins__marketplaces_lead_to_the_plugin(marketplace: str) -> None:
    """The repository is a marketplace for both clients."""
    (entry,) = load(REPOSITORY / marketplace)["plugins"]
    source = entry["source"]
    path: str = source if isinstance(source, str) else source["path"]
    assert (REPOSITORY / path).resolve() == PLUGIN


def test_plugins__server_key_is_short() -> None:
    """The server is called kb, so that the names of its tools stay short."""
    (name,) = load(PLUGIN / ".mcp.json")["mcpServers"]
    assert name == "kb"


def test_plugins__skill_is_the_packaged_one() -> None:
    """The plugin's skill and the one in the package are the same, byte for byte."""
    packaged = {path.relative_to(SKILLS): path.read_bytes() for path in SKILLS.rglob("*") if path.is_file()}
    folder = PLUGIN / "skills"
    assert {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()} == packaged


def test_plugins__skill_is_valid() -> None:
    """The skill has the form that the Agent Skills specification asks for."""
    (skill,) = SKILLS.iterdir()
    text = (skill / "SKILL.md").read_text(encoding="utf-8")
    _, head, body = text.split("---\n", 2)
    front: dict[str, str] = cast(Any, YAML(typ="safe")).load(head)
    assert front["name"] == skill.name
    assert 0 < len(front["description"]) <= 1024
    assert set(front) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert len(body.splitlines()) < 500


def test_plugins__skill_speaks_of_tools_that_exist() -> None:
    """No tool is named that the server does not have."""
    text = (SKILLS / "knowledge-base" / "SKILL.md").read_text(encoding="utf-8")
    known = {tool.name for tool in all_tools(default_mode="auto", max_results=10)}
    named = {word.strip("`.,;:()") for word in text.split() if word.strip("`(").startswith("kb_")}
    assert named - {"kb_"} <= known
    assert {"kb_search", "kb_read", "kb_patch", "kb_undo"} <= named
