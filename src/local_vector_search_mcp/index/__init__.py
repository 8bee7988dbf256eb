"""The derived SQLite index, which may always be rebuilt from Markdown."""
