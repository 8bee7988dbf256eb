"""The agent skill that comes with the package, served as resources and, in the newer era, as a skill."""

from collections.abc import Sequence
from pathlib import Path

from local_vector_search_mcp.server.isolated import Skill, SkillCatalogProvider
from local_vector_search_mcp.server.wire import Json

SKILLS = Path(__file__).parent / "skills"


class PackagedSkills(SkillCatalogProvider):
    """Reads the packaged skills when somebody first asks for them."""

    def __init__(self) -> None:
        super().__init__()
        self._read: tuple[Skill, ...] | None = None

    async def load_skills(self) -> Sequence[Skill]:
        """The skills of the package."""
        if self._read is None:
            folders = sorted(folder for folder in SKILLS.iterdir() if folder.is_dir())
            self._read = tuple(Skill.from_directory(folder) for folder in folders)
        return self._read

    async def listed(self) -> list[Json]:
        """Their files as ``resources/list`` shows them."""
        resources = [resource.to_mcp_resource() for resource in await self.list_resources()]
        return [resource.model_dump(by_alias=True, exclude_none=True, exclude={"meta"}) for resource in resources]
