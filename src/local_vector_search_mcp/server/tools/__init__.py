"""The MCP tools, grouped by subject."""
