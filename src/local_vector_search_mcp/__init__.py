"""Local Vector Search MCP: one project's Markdown as an editable, searchable knowledge base for agents."""

__version__ = "0.1.0"
