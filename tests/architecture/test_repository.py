"""What holds for every file of the repository."""

import json
import re
import tomllib

from tests.support.source_tree import ROOT, tracked_files

from local_vector_search_mcp import __version__

TEXT_SUFFIXES = {".py", ".md", ".toml", ".yaml", ".yml", ".json", ".css", ".cfg", ".txt", ""}
# Folders of one machine. Spelled apart so that this file does not name what it looks for.
MACHINE_PATH = re.compile(
    r"(?<![\w.])/(?:" + "|".join(("work", "root", "farm", "opt/lvs", "tmp/lvs")) + r")(?:/|\b(?=env))"
)


def test_files__name_no_path_of_one_machine() -> None:
    """Nothing depends on where a checkout stands."""
    wrong = [
        path.relative_to(ROOT).as_posix()
        for path in tracked_files()
        if path.suffix in TEXT_SUFFIXES
        and path.relative_to(ROOT).parts[0] != "fixtures"
        and MACHINE_PATH.search(path.read_text(encoding="utf-8"))
    ]
    assert not wrong


def test_version__is_the_same_everywhere() -> None:
    """Package, manifest for registries, and changelog agree."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    server = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
    changelog = (ROOT / "docs" / "changelog.md").read_text(encoding="utf-8")
    assert project["version"] == __version__
    assert server["version"] == __version__
    assert [package["version"] for package in server["packages"]] == [__version__]
    for manifest in (ROOT / "plugins").glob("*/.*-plugin/plugin.json"):
        assert json.loads(manifest.read_text(encoding="utf-8"))["version"] == __version__
    newest = re.search(r"^## (\S+)", changelog, re.MULTILINE)
    assert newest is not None
    assert newest[1] == __version__


def test_server_json__fits_its_limits() -> None:
    """The registry's limits, and the line in the README by which it knows the owner."""
    server = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
    assert len(server["description"]) <= 100
    assert f"mcp-name: {server['name']}" in (ROOT / "README.md").read_text(encoding="utf-8")
