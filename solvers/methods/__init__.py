"""One method a file; a file is found without being registered anywhere."""
