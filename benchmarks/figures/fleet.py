"""Tasks of a fleet beside tasks of one process.

Each machine is a process with eight windows, a journal and a log; so is this process, which submits. The answer to
``{"row": name, ...}`` has the figures of a row. ``python -m benchmarks --only fleet`` prints tables. It needs
``callboard[fleet]`` and ``nats-server``, so ``python -m benchmarks`` leaves it out unless it is named.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from contextlib import ExitStack, contextmanager
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from benchmarks.fleet_processes import START_SECONDS, FleetProcesses, cpu_of, megabytes_of
from benchmarks.fleet_worker import CPU_SECONDS, SHELL, WINDOWS, kept, parts, started
from benchmarks.protocol import serve
from callboard import Supervisor, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

SUBMITTER = "desk"
PATIENCE = 300.0
THINKING_SECONDS = 0.2
ROUNDS = 2
"""The times that one process and several do the tasks in turn."""


def measure(parameters: dict[str, Any]) -> dict[str, float]:
    """Measure a row."""
    match parameters["row"]:
        case "latency":
            return latency(int(parameters["tasks"]))
        case "rest":
            return at_rest(float(parameters["seconds"]))
        case "local":
            return local(int(parameters["machines"]), int(parameters["tasks"]))
        case "throughput":
            return throughput(int(parameters["machines"]), int(parameters["tasks"]))
        case _:
            return asyncio.run(beats(int(parameters["machines"]), parameters["interval"], parameters["seconds"]))


@contextmanager
def fleet(machines: int) -> Iterator[tuple[FleetProcesses, Supervisor]]:
    """Start a server, machines and a supervisor that knows their windows."""
    with TemporaryDirectory() as folder, FleetProcesses(Path(folder)) as processes:
        for number in range(machines):
            processes.add(f"machine-{number}")
        with started(processes.url, SUBMITTER, Path(folder)) as supervisor:
            end = time.monotonic() + START_SECONDS
            while len(supervisor.targets()) < WINDOWS * (machines + 1):
                if time.monotonic() > end:
                    msg = "the machines did not start"
                    raise RuntimeError(msg)
                time.sleep(0.05)
            yield processes, supervisor


def _task(target: str, seconds: float = 0.0) -> Task:
    return Task(request=str(seconds), target=target)


def _window(number: int, machine: int | None) -> str:
    return f"memo:{number}" if machine is None else f"machine-{machine}:memo:{number}"


def _done(supervisor: Supervisor, tasks: list[Task]) -> None:
    for handle in supervisor.submit_all(tasks):
        result = handle.result(PATIENCE)
        if not result.ok:
            msg = f"the benchmark is broken: {result}"
            raise RuntimeError(msg)


def latency(tasks: int) -> dict[str, float]:
    """Do tasks alternately here and on another machine, one at a time.

    Those of a shell name the machine, or any machine.
    """
    seconds: dict[str, list[float]] = {"here": [], "there": [], "shell": [], "any": []}
    with fleet(1) as (_, supervisor):
        for number in range(-WINDOWS, tasks):  # the first ones are a warm-up
            windows = {place: _window(number % WINDOWS, machine) for place, machine in (("here", None), ("there", 0))}
            for place, target in {**windows, "shell": f"machine-0:{SHELL}", "any": f"any:{SHELL}"}.items():
                begin = time.perf_counter()
                _done(supervisor, [_task(target)])
                if number >= 0:
                    seconds[place].append(time.perf_counter() - begin)
    return {
        f"{place}_{name}": statistics.quantiles(values, n=100, method="inclusive")[percent - 1]
        for place, values in seconds.items()
        for name, percent in (("median", 50), ("p99", 99))
    }


def throughput(machines: int, tasks: int) -> dict[str, float]:
    """Do tasks whose model thinks, on all windows of some machines.

    Without machines, the windows are those of this process.
    """
    windows = [_window(number, machine) for number in range(WINDOWS) for machine in (range(machines) or (None,))]
    with fleet(machines) as (processes, supervisor):
        _done(supervisor, [_task(window) for window in windows])
        costs = {"submitter": (os.getpid(),), "machines": processes.machine_pids, "server": (processes.server_pid,)}
        before = {name: cpu_of(*pids) for name, pids in costs.items()}
        begin, traffic = time.perf_counter(), processes.traffic()
        _done(supervisor, [_task(windows[number % len(windows)], THINKING_SECONDS) for number in range(tasks)])
        seconds, later = time.perf_counter() - begin, processes.traffic()
        spent = {f"{name}_ms": (cpu_of(*pids) - before[name]) / tasks * 1e3 for name, pids in costs.items()}
        sent = {name: (count - traffic[name]) / tasks for name, count in later.items()}
    return {"rate": tasks / seconds, **spent, **sent}


def _work_here(tasks: int, seconds: float) -> list[Task]:
    return [_task(_window(number % WINDOWS, None), seconds) for number in range(tasks)]


def local(machines: int, tasks: int) -> dict[str, float]:
    """Do tasks in this process and on local machines, alternately."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        more = kept(folder, "many", {"local": machines, "local_parts": "benchmarks.fleet_worker:parts"})
        supervisors = {
            "one": stack.enter_context(Supervisor.start(kept(folder, "one"), **parts())),
            "many": stack.enter_context(Supervisor.start(more)),
        }
        rates = {}
        for kind, seconds in (("cpu", CPU_SECONDS), ("instant", 0.0)):
            spent = dict.fromkeys(supervisors, 0.0)
            for supervisor in supervisors.values():
                _done(supervisor, _work_here(2 * WINDOWS, seconds))  # a warm-up
            for _ in range(ROUNDS):
                for name, supervisor in supervisors.items():
                    work = _work_here(tasks, seconds)
                    begin = time.perf_counter()
                    _done(supervisor, work)
                    spent[name] += time.perf_counter() - begin
            rates.update({f"{kind}_{name}": tasks * ROUNDS / passed for name, passed in spent.items()})
            rates[f"{kind}_ratio"] = rates[f"{kind}_many"] / rates[f"{kind}_one"]
    return rates


def at_rest(seconds: float) -> dict[str, float]:
    """Let a machine, a submitter and the server rest."""
    with fleet(1) as (processes, _):
        pids = {"machine": processes.machine_pids[0], "submitter": os.getpid(), "server": processes.server_pid}
        time.sleep(1.0)  # what a start leaves behind
        before = {name: cpu_of(pid) for name, pid in pids.items()}
        time.sleep(seconds)
        cpu = {f"{name}_cpu": (cpu_of(pid) - before[name]) / seconds * 1e3 for name, pid in pids.items()}
        return {**cpu, **{f"{name}_megabytes": megabytes_of(pid) for name, pid in pids.items()}}


async def beats(machines: int, interval: float, seconds: float) -> dict[str, float]:
    """Have simulated machines tell their states, and follow those of all.

    Each has its connection, its watches and its queue as a supervisor's, but no targets. All are in this process.
    """
    from callboard.fleet import EngineAwayError, NatsEngine, set_up

    with TemporaryDirectory() as folder, FleetProcesses(Path(folder)) as processes:
        await set_up(processes.url)
        empty = megabytes_of(processes.server_pid)
        engines = [NatsEngine(processes.url, f"machine-{number}") for number in range(machines)]
        for engine in engines:
            await engine.open()
        works = [
            asyncio.create_task(work)
            for number, engine in enumerate(engines)
            for work in _work_of(engine, f"machine-{number}", interval, number / machines * interval)
        ]
        await asyncio.sleep(interval + 2.0)
        cpu, own, traffic = cpu_of(processes.server_pid), time.process_time(), processes.traffic()
        begin = time.perf_counter()
        await asyncio.sleep(seconds)
        passed = time.perf_counter() - begin
        later = processes.traffic()
        server_cpu, own = (cpu_of(processes.server_pid) - cpu) / passed, (time.process_time() - own) / passed
        megabytes = megabytes_of(processes.server_pid)
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)
        for engine in engines:
            try:
                await engine.close()
            except EngineAwayError:
                continue
    messages, size = ((later[name] - traffic[name]) / passed for name in ("messages", "bytes"))
    return {
        "rate": messages,
        "kilobytes": size / 1e3,
        "server_cpu": server_cpu * 1e3,
        "server_megabytes": megabytes,
        "megabytes_each": (megabytes - empty) / machines,
        "machine_cpu": own / machines * 1e3,
    }


def _work_of(engine: Any, name: str, interval: float, delay: float) -> Iterator[Any]:
    """Give what a supervisor's connection does while nothing happens."""
    from callboard.fleet import Bucket
    from callboard.fleet._machines import Machines
    from callboard.fleet._work_messages import MachineState

    async def tell() -> None:
        await asyncio.sleep(delay)
        version, now = metadata.version("callboard"), time.time()
        state = MachineState(callboard=version, identity=name, since=now, beat=1, at=now, running=0, slots=8)
        while True:
            state = state.model_copy(update={"beat": state.beat + 1, "at": time.time()})
            await engine.put(Bucket.MACHINES, f"{name}.state", state.model_dump_json().encode())
            await asyncio.sleep(interval)

    async def follow(bucket: Bucket) -> None:
        async for _ in engine.watch(bucket, name):
            pass

    yield tell()
    yield Machines(engine, name, lambda _: None).watch()
    yield follow(Bucket.REQUESTS)
    yield follow(Bucket.RESULTS)
    yield follow(Bucket.SIGNALS)
    yield engine.receive(name)


if __name__ == "__main__":
    serve(measure)
