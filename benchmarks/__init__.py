"""Cost of callboard beside raw Pykka and peers: ``python -m benchmarks``."""
