"""Commands for version 1 of the API, each registered in `pyproject.toml` under its words."""
