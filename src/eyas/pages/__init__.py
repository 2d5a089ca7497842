"""HTML pages that need no other file: what those of `explain` and `tune` have in common."""
