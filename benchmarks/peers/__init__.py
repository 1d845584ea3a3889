"""The same job in other libraries, each run by the interpreter of an environment of its own."""
