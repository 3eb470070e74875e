"""The claims of one paper a file."""
