"""Keep pytest out of the copies of `callboard run` and `eval`."""

collect_ignore = ["runs", "evals"]
