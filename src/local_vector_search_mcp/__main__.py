"""``python -m local_vector_search_mcp``: the command line."""

from local_vector_search_mcp.cli.main import main

if __name__ == "__main__":
    main()
