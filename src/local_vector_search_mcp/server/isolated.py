"""FastMCP, imported so that neither the project's directory nor its environment can change it.

``import fastmcp`` reads ``.env`` in the working directory and every ``FASTMCP_*`` variable. A cloned repository must
not be able to stop the start, unmask errors or move the endpoint, so every module of this package that needs FastMCP
imports it from here.
"""

import gc
import os

from pydantic import BaseModel

for _name in [name for name in os.environ if name.upper().startswith("FASTMCP_")]:
    del os.environ[_name]
os.environ["FASTMCP_ENV_FILE"] = os.devnull
os.environ["FASTMCP_LOG_ENABLED"] = "false"

# The import makes some hundred thousand objects that live for ever; collecting garbage among them only costs time.
_collecting = gc.isenabled()
gc.disable()
# The protocol has hundreds of message types in several versions, and a connection uses a few: each is built when it is
# first used.
BaseModel.model_config["defer_build"] = True

from fastmcp import FastMCP  # noqa: E402
from fastmcp.server.auth import AccessToken, TokenVerifier  # noqa: E402
from fastmcp.skills import Skill  # noqa: E402
from fastmcp.skills.provider import SkillCatalogProvider  # noqa: E402
from fastmcp.tools.base import Tool  # noqa: E402
from fastmcp.utilities.components import FastMCPComponent  # noqa: E402
from fastmcp.utilities.versions import VersionSpec  # noqa: E402

del BaseModel.model_config["defer_build"]
gc.freeze()
if _collecting:
    gc.enable()

__all__ = [
    "AccessToken",
    "FastMCP",
    "FastMCPComponent",
    "Skill",
    "SkillCatalogProvider",
    "TokenVerifier",
    "Tool",
    "VersionSpec",
]
