"""Have a small local model add a contact to a phone.

``python -m benchmarks.android_model`` prints one row for each run. A MobileAgent is asked to add one contact. The phone
is `callboard.testing.Phone`, behind a real adb server. Each run has another name, another number and another seed. A
run is right if the phone has that contact, whatever the agent reports. The weights come from
``tests/local_llm/fetch.py``, the server is ``xllamacpp`` (``pip install '.[local-llm]'``).
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import sys
import time
from pathlib import Path

from callboard import EventName, Settings, Supervisor, Task
from callboard.testing import Contact, Phone, plugged_in

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "local_llm"))

from server import serving  # noqa: E402 - a file of the tests, not a package
from weights import WEIGHTS  # noqa: E402 - as above

NAMES = ("Ada Lovelace", "Katherine Johnson", "Emmy Noether", "Mary Somerville", "Rosalind Franklin")
SECONDS = 600


def run(url: str, seed: int, temperature: float, steps: int) -> str:
    """Have the contact added, and return the run's row."""
    first, last = NAMES[seed % len(NAMES)].split()
    contact, phone = Contact(first, last, f"555-01{seed:02}"), Phone()
    provider = {"url": url, "temperature": temperature, "seed": seed, "actions": 1, "short": True, "pictures": False}
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    begin = time.monotonic()
    with plugged_in(phone) as device:
        settings = Settings.load(
            models={"mobile": "local:model"},
            providers={"local": {**provider, "max_tokens": 600, "input_price": 0, "output_price": 0}},
            android={"devices": [device.serial], "port": port},
            limits={"steps": steps, "model_seconds": SECONDS, "step_seconds": SECONDS, "question_seconds": 1},
            policy=[{"verdict": "allow"}],
        )
        request = f"Add a contact: first name {first}, last name {last}, phone {contact.phone}. Save it."
        with Supervisor.start(settings) as supervisor:
            handle = supervisor.submit(Task(request=request, target=device.serial))
            result = handle.result(SECONDS * steps)
            called = [event.data for event in handle.events() if event.name is EventName.COMMAND_ENDED]
    right = "yes" if contact in phone.contacts.people else "no"
    tools = ", ".join(f"{row['tool']}{'' if row['status'] == 'success' else ' (failed)'}" for row in called)
    return f"| {seed} | {result.outcome.value} | {right} | {time.monotonic() - begin:.0f} | {tools} |"


def main() -> None:
    """Run the given number of times, and print the rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.android_model")
    parser.add_argument("--model", choices=WEIGHTS, default="1.5b")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--temperature", type=float, default=0.2)
    parser.add_argument("--steps", type=int, default=12)
    options = parser.parse_args()
    print("| seed | the agent says | the contact is there | seconds | tools |\n|--:|---|---|--:|---|")
    with serving(WEIGHTS[options.model].path, word_threads=2) as url:
        for seed in range(1, options.runs + 1):
            print(run(url, seed, options.temperature, options.steps), flush=True)


if __name__ == "__main__":
    main()
