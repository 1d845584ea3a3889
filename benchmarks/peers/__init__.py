"""The same job in other libraries, each in its own environment."""
