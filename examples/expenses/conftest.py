"""Keep pytest out of the copies that `callboard run` makes."""

collect_ignore = ["runs"]
