"""Have a small local model write into a real editor.

``python -m benchmarks.desktop_model`` prints one row for each run. An AppAgent is asked to type a sentence into
mousepad, on a private display, and to save it as a file. Each run has another seed. A run is right if the file holds
the sentence, whatever the agent reports. The weights come from ``tests/local_llm/fetch.py``, the server is
``xllamacpp`` (``pip install '.[local-llm]'``).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from callboard import EventName, FunctionModel, ModelRequest, Settings, Supervisor, Task

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "local_llm"))

from server import serving  # noqa: E402 - a file of the tests, not a package
from weights import WEIGHTS  # noqa: E402 - as above

SENTENCE = "The quick brown fox jumps over the lazy dog."
SECONDS = 600


def host(request: ModelRequest) -> dict[str, Any]:
    """Open the editor; only the AppAgent uses the language model."""
    if not request.memory:
        opened = {"function": "open_in_desktop", "arguments": {"application": "editor", "arguments": {}}}
        return {"Status": "CONTINUE", "Actions": [opened]}
    if not request.subtasks:
        window = request.memory[0].results[0].value["id"]  # type: ignore[call-overload,index]
        return {"Status": "ASSIGN", "ControlText": window, "Current Sub-Task": request.request}
    return {"Status": "FINISH", "Comment": request.subtasks[-1].outcome.value}


def run(folder: Path, url: str, seed: int, temperature: float, steps: int) -> str:
    """Have the sentence typed and saved, and return the run's row."""
    file = folder / "note.txt"
    provider = {"url": url, "temperature": temperature, "seed": seed, "actions": 1, "short": True, "pictures": False}
    settings = Settings.load(
        models={"app": "local:model"},
        providers={"local": {**provider, "input_price": 0, "output_price": 0}},
        desktop={"display": "private", "folder": folder, "applications": {"editor": ["mousepad"]}, "installed": False},
        limits={"steps": steps, "model_seconds": SECONDS, "step_seconds": SECONDS, "question_seconds": 1},
        policy=[{"verdict": "allow"}],
    )
    request = f'Type this sentence into the editor: "{SENTENCE}" Then save it as {file}.'
    begin = time.monotonic()
    with Supervisor.start(settings, models={"host": FunctionModel(host)}) as supervisor:
        handle = supervisor.submit(Task(request=request))
        result = handle.result(SECONDS * steps)
        called = [event.data for event in handle.events() if event.name is EventName.COMMAND_ENDED][1:]
        said = next((event.data["outcome"] for event in handle.events() if event.name is EventName.SUBTASK_ENDED), "")
    text = file.read_text(encoding="utf-8").strip() if file.is_file() else ""
    right = "yes" if text == SENTENCE else f"no: {text!r}" if text else "no file"
    tools = ", ".join(f"{row['tool']}{'' if row['status'] == 'success' else ' (failed)'}" for row in called)
    return f"| {seed} | {said or result.outcome.value} | {right} | {time.monotonic() - begin:.0f} | {tools} |"


def main() -> None:
    """Run the given number of times, and print the rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.desktop_model")
    parser.add_argument("--model", choices=WEIGHTS, default="1.5b")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--temperature", type=float, default=0.2)
    parser.add_argument("--steps", type=int, default=8)
    options = parser.parse_args()
    print("| seed | the agent says | the file is right | seconds | tools |\n|--:|---|---|--:|---|")
    with tempfile.TemporaryDirectory() as folder, serving(WEIGHTS[options.model].path, word_threads=2) as url:
        for seed in range(1, options.runs + 1):
            subfolder = Path(folder, str(seed))
            subfolder.mkdir()
            print(run(subfolder, url, seed, options.temperature, options.steps), flush=True)


if __name__ == "__main__":
    main()
