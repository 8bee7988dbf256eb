"""The MCP surface; the only package that imports FastMCP."""
