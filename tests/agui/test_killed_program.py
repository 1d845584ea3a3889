"""Programs behind AG-UI that are killed, and a front end that sends its run again."""

from __future__ import annotations

import json
import random
import sys
import threading

import httpx2
import pytest
from ag_ui.core import RunAgentInput, UserMessage

import forks
from support import PATIENCE

PROGRAM = """
import sys
import time

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount
import callboard.agui
from callboard import FunctionModel, Settings, Supervisor
from callboard.network import listening

def app(request):
    time.sleep(0.05)
    done = sum(result.status == "success" for record in request.memory for result in record.results)
    if done == 5:
        return {"Status": "FINISH"}
    return {"Status": "CONTINUE", "Function": "append_rows", "Args": {"rows": [[f"row {done}", done]]}}

folder = sys.argv[1]
settings = Settings.load(
    documents={"workspace": folder + "/workspace"},
    journal={"path": folder + "/journal.db"},
    policy=[{"verdict": "allow", "tool": "append_rows"}],
)
with Supervisor.start(settings, models={"app": FunctionModel(app)}) as supervisor:
    listener = listening(0)
    print(listener.getsockname()[1], flush=True)
    mounted = Starlette(routes=[Mount("/agui", callboard.agui.app(supervisor, person=lambda _: "ann"))])
    uvicorn.Server(uvicorn.Config(mounted, log_level="critical", lifespan="off")).run(sockets=[listener])
"""
RUN = RunAgentInput(
    thread_id="t", run_id="r", messages=[UserMessage(id="m", content="Add five rows")],
    forwarded_props={"callboard": {"target": "list.csv"}},
).model_dump(by_alias=True, mode="json")  # fmt: skip


def last_event(port):
    """Send the run, and return its last event; None if the connection is lost."""
    try:
        response = httpx2.post(f"http://127.0.0.1:{port}/agui/", json=RUN, timeout=PATIENCE)
    except httpx2.TransportError:
        return None
    return json.loads(response.text.split("\n\n")[-2].removeprefix("data: "))


@pytest.mark.parametrize("seed", range(4))
def test_repeated_run_of_a_killed_program_is_done_once(tmp_path, seed):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "list.csv").write_text("name,number\n", encoding="utf-8")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    moments, event = random.Random(seed), None  # noqa: S311 - the moments of kills
    command = [sys.executable, str(tmp_path / "program.py"), str(tmp_path)]
    for number in range(20):
        with forks.Program(command, stdout=-1, text=True) as process:
            port = int(process.stdout.readline())
            killer = threading.Timer(moments.uniform(0.02, 0.5), process.kill)
            if number < 3:
                killer.start()
            event = last_event(port)
            killer.cancel()
            process.kill()
        if event is not None and event["type"] in {"RUN_FINISHED", "RUN_ERROR"}:
            break
    assert event["type"] == "RUN_FINISHED", event
    assert event["outcome"] == {"type": "success"}
    rows = (workspace / "list.csv").read_text(encoding="utf-8").splitlines()
    assert rows == ["name,number", *(f"row {number},{number}" for number in range(5))]
