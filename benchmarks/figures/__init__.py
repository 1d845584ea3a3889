"""Further measurements of callboard; each file is a contender."""
