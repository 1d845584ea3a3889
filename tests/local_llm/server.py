"""A language model's server on this machine, as a process of its own: xllamacpp, which speaks the OpenAI protocol.

    python tests/local_llm/server.py WEIGHTS [--threads 2] [--context 16384] [--port 0]

It prints its address once it answers, and ends when its input is closed: it can't outlive who started it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTEXT = 16384
THREADS = 2


class ServerError(Exception):
    """The server does not start; the text has the end of its log."""


@contextlib.contextmanager
def serving(
    weights: Path, *, threads: int = THREADS, word_threads: int = 1, context: int = CONTEXT, seconds: float = 120
) -> Iterator[str]:
    """Start the server, give the address that goes into ``providers.local.url``, and end it.

    Raises:
        ServerError: If it ends, or does not say within so many seconds that it is ready.
    """
    command = [sys.executable, __file__, str(weights), "--threads", str(threads), "--context", str(context)]
    command += ["--word-threads", str(word_threads)]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            url = _address(process)
            _check(url, seconds)
            yield f"{url}/v1"
        except ServerError as error:
            log.seek(0)
            msg = f"{error}: {log.read()[-2000:]}"
            raise ServerError(msg) from error
        finally:
            _end(process)


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line.startswith("http"):
        msg = f"the server of the language model ended with {process.wait()}"
        raise ServerError(msg)
    return line


def _check(url: str, seconds: float) -> None:
    """Ask whether it is ready: it says its address only when its model is loaded."""
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=seconds) as answer:  # noqa: S310 - its own address
            answer.read()
    except OSError as error:
        msg = f"the server of the language model is not ready: {error}"
        raise ServerError(msg) from error


def _end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("weights", type=Path)
    parser.add_argument("--threads", type=int, default=THREADS, help="for reading prompts")
    parser.add_argument("--word-threads", type=int, default=1, help="for making words; more are slower on busy cores")
    parser.add_argument("--context", type=int, default=CONTEXT)
    parser.add_argument("--port", type=int, default=0)
    said = parser.parse_args()

    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(said.weights)
    params.port = said.port
    params.n_ctx = said.context
    params.n_parallel = 1
    params.cpuparams_batch.n_threads = said.threads
    params.cpuparams.n_threads = said.word_threads  # they meet after each layer of each word
    params.ui = False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    os._exit(0)  # its threads are not waited for: nothing of it is worth keeping


if __name__ == "__main__":
    _main()
