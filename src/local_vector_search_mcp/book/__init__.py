"""Elements to PDF, in a process of its own."""
