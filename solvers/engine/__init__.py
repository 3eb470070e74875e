"""Running a method: the definition itself on arrays, and the same function compiled."""
