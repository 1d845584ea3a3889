"""What callboard costs beside raw Pykka and beside its peers: ``python -m benchmarks``."""
