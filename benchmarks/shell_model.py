"""Have a small local model count errors in a shell.

``python -m benchmarks.shell_model`` prints one row for each run. A LinuxAgent is asked how many lines with ERROR are in
a folder of logs, and which file has most. Each run has other logs and another seed. A run is right if the agent's
report has the count and the file's name. The weights come from ``tests/local_llm/fetch.py``, the server is
``xllamacpp`` (``pip install '.[local-llm]'``).
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
from pathlib import Path

from callboard import EventName, Settings, Supervisor, Task

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "local_llm"))

from server import serving  # noqa: E402 - a file of the tests, not a package
from weights import WEIGHTS  # noqa: E402 - as above

REQUEST = "How many ERROR lines are in these logs, and which file has most?"
FILES = ("api.log", "mail.log", "web.log")
SECONDS = 600


def write_logs(folder: Path, seed: int) -> tuple[int, str]:
    """Write logs, and count their ERROR lines and the worst file."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    counts = dict(zip(FILES, chance.sample(range(3, 30), len(FILES)), strict=True))
    for name, errors in counts.items():
        lines = ["ERROR no connection"] * errors + ["INFO served"] * chance.randint(40, 80)
        chance.shuffle(lines)
        text = "".join(
            f"2026-05-01T10:{number // 60:02}:{number % 60:02} {line}\n" for number, line in enumerate(lines)
        )
        (folder / name).write_text(text, encoding="utf-8")
    return sum(counts.values()), max(counts, key=counts.__getitem__)


def run(folder: Path, url: str, seed: int, temperature: float, steps: int) -> str:
    """Have the errors counted, and return the run's row."""
    total, most = write_logs(folder, seed)
    provider = {"url": url, "temperature": temperature, "seed": seed, "actions": 1, "short": True, "max_tokens": 600}
    settings = Settings.load(
        models={"linux": "local:model"},
        providers={"local": {**provider, "input_price": 0, "output_price": 0}},
        shells={"logs": {"cwd": folder}},
        limits={"steps": steps, "model_seconds": SECONDS, "step_seconds": SECONDS, "question_seconds": 1},
        policy=[{"verdict": "allow"}],
    )
    begin = time.monotonic()
    with Supervisor.start(settings) as supervisor:
        handle = supervisor.submit(Task(request=REQUEST, target="logs"))
        result = handle.result(SECONDS * steps)
        called = [event.data for event in handle.events() if event.name is EventName.POLICY_DECIDED]
    answer = f"{result.output or ''} {result.comment}".replace("\n", " ").replace("|", "/")
    right = "yes" if result.ok and re.search(rf"\b{total}\b", answer) and most in answer else "no"
    commands = "; ".join(f"{row['tool']} {row['arguments']}"[:160].replace("|", "¦") for row in called)
    return (
        f"| {seed} | {total}, {most} | {result.outcome.value}: {answer[:120]} | {right} | "
        f"{time.monotonic() - begin:.0f} | {commands} |"
    )


def main() -> None:
    """Run the given number of times, and print the rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shell_model")
    parser.add_argument("--model", choices=WEIGHTS, default="1.5b")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--temperature", type=float, default=0.2)
    parser.add_argument("--steps", type=int, default=6)
    options = parser.parse_args()
    print("| seed | in the logs | the agent says | right | seconds | calls |\n|--:|---|---|---|--:|---|")
    with tempfile.TemporaryDirectory() as folder, serving(WEIGHTS[options.model].path, word_threads=2) as url:
        for seed in range(1, options.runs + 1):
            subfolder = Path(folder, str(seed))
            subfolder.mkdir()
            print(run(subfolder, url, seed, options.temperature, options.steps), flush=True)


if __name__ == "__main__":
    main()
