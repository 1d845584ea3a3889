"""Representations for debuggers: short, with the state, and without secrets."""

from __future__ import annotations

import functools
import threading
from datetime import UTC, datetime

import pytest
from pydantic import SecretStr, ValidationError

from callboard import EventName, FunctionModel, ModelAnswer, PlanStep, ScriptedModel, Settings, Task
from callboard.errors import NotAllTakenError, SettingsError, TaskRefusedError
from callboard.kinds import ON_TARGET, AgentSpec, AppAgentStateManager
from callboard.messages import Secret
from callboard.testing import MemoryServer
from support import PATIENCE

KEY = "sk-Zq7'\"\\9hunter2"
"""A secret with characters that representations escape."""
LONGEST = 500


@pytest.fixture
def window():
    return MemoryServer.window()


@pytest.fixture
def held(start, window):
    """A running task: its model waits until the test lets it answer."""
    entered, release = threading.Event(), threading.Event()

    def work(request):
        if request.memory:
            entered.set()
            assert release.wait(PATIENCE)
            return {"Status": "FINISH", "Comment": "done"}
        return {"Function": "append", "Args": {"control_id": "field-1", "text": "!"}, "Status": "CONTINUE"}

    supervisor = start(app=FunctionModel(work), servers=[MemoryServer(window)])
    handle = supervisor.submit(Task(id="sales-1", request="look around", target=window.id))
    assert entered.wait(PATIENCE)
    yield supervisor, handle, release
    release.set()


def test_a_handle_shows_the_state_and_the_steps_of_its_task(held):
    _, handle, release = held
    assert repr(handle) == "<TaskHandle sales-1 running, 2 steps>"
    release.set()
    handle.result(PATIENCE)
    assert repr(handle) == "<TaskHandle sales-1 finished, 2 steps>"


def test_repr_of_a_handle_works_after_its_supervisor_stopped(held):
    supervisor, handle, release = held
    release.set()
    supervisor.stop()
    assert repr(handle).startswith("<TaskHandle sales-1 ")


def test_a_supervisor_shows_its_state_servers_and_journal(begin):
    supervisor = begin(app=FunctionModel(lambda request: {"Status": "FINISH"}))
    assert repr(supervisor).startswith("<Supervisor running, servers: memory, journal: ")
    assert repr(supervisor).endswith("journal.db>")
    supervisor.stop()
    assert repr(supervisor).startswith("<Supervisor stopped, ")


def test_a_representation_needs_no_thread_of_the_supervisor(held):
    supervisor, handle, _ = held
    inside = threading.Event()
    go_on = threading.Event()

    def block(_event):
        inside.set()
        assert go_on.wait(PATIENCE)

    stream = supervisor._assembly.stream  # noqa: SLF001 - a sink blocks the emitting thread, which holds the stream's lock
    stream.add_sink(block)
    poster = threading.Thread(target=stream.emit, args=(EventName.SERVER_SAID,))
    poster.start()
    assert inside.wait(PATIENCE)
    shown = []
    reader = threading.Thread(target=lambda: shown.extend((repr(handle), repr(supervisor))))
    reader.start()
    reader.join(PATIENCE)
    go_on.set()
    poster.join(PATIENCE)
    assert len(shown) == 2


def test_models_and_surfaces_show_their_names(window):
    def decide(request):
        return {"Status": "FINISH"}

    assert repr(FunctionModel(decide)).endswith(".decide, 0 calls>")
    assert repr(ScriptedModel({"host": [{"Status": "FINISH"}]}, "plan.yaml")) == "<ScriptedModel plan.yaml: host>"
    assert repr(MemoryServer(window)) == "<MemoryServer 'memory'>"
    spec = AgentSpec(name="editor", machine=AppAgentStateManager, strategies=ON_TARGET)
    assert repr(spec) == "<AgentSpec editor, AppAgentStateManager>"


def test_messages_show_what_differs_from_the_defaults(held):
    _, handle, release = held
    release.set()
    result = handle.result(PATIENCE)
    assert repr(handle.task) == "Task(id='sales-1', request='look around', target='memo:one')"
    assert repr(result).startswith("TaskResult(task_id='sales-1', outcome='finished', ")
    assert "schema_version" not in repr(result)
    first = next(handle.events())
    assert repr(first).startswith(f"TaskSubmitted(seq={first.seq}, at={first.at!r}, task_id='sales-1'")


def test_long_values_are_cut():
    task = Task(request="word " * 1000, plan=[PlanStep(request="x" * 5000)] * 3, labels={"k": "v" * 5000})
    assert len(repr(task)) < LONGEST
    assert "plan=['3 steps']" in repr(task)


def quoting_task():
    return Task(
        request=f"log in with {KEY}",
        key=f"login-{KEY}",
        labels={"note": KEY},
        secrets={"password": SecretStr(KEY), "other": Secret(value=SecretStr(f"{KEY}2"), tools=("login",))},
        may_change=[f"{KEY}.docx"],
        policy=[{"verdict": "deny", "tool": KEY}],
        deadline=datetime(2126, 1, 1, tzinfo=UTC),
    )


def settings_with_keys():
    return Settings.load(
        secrets={"password": KEY},
        providers={
            "local": {"url": f"http://user:{'hunter2' * 2}@127.0.0.1/v1", "api_key": KEY, "headers": {"x": KEY}},
            "house": {"plugin": "house", "options": {"token": KEY}},
        },
        mcpServers={"web": {"command": "x", "env": {"TOKEN": KEY}, "optional": True}},
        surfaces={"lamps": {"plugin": "lamps", "options": {"token": KEY}}},
    )


def leaks(text: str) -> bool:
    forms = {KEY, repr(KEY)[1:-1], "hunter2", "sk-Zq7"}
    return any(form in text for form in forms)


@pytest.mark.parametrize("make", [quoting_task, settings_with_keys], ids=["task", "settings"])
@pytest.mark.parametrize("show", [repr, str, "{}".format, "{!r}".format], ids=["repr", "str", "format", "!r"])
def test_no_representation_shows_a_secret(make, show):
    assert not leaks(show(make()))


def test_no_part_of_the_settings_shows_a_secret():
    settings = settings_with_keys()
    parts = [*settings.providers.values(), *settings.mcp_servers.values(), *settings.surfaces.values()]
    assert not any(leaks(repr(part)) or leaks(str(part)) for part in [*parts, *settings.secrets.values()])


def test_a_function_with_bound_arguments_does_not_show_them():
    def ask(key, request):
        return {"Status": "FINISH"}

    for function in (functools.partial(ask, KEY), functools.partial(ask, key=KEY), CallsWithKey()):
        assert not leaks(repr(FunctionModel(function)))


class CallsWithKey:
    """A callable whose own representation shows a key."""

    def __call__(self, request):
        return ModelAnswer(content={"Status": "FINISH"})

    def __repr__(self):
        return f"CallsWithKey({KEY!r})"


def test_a_finished_task_and_its_events_show_no_secret(start, window):
    def work(request):
        if request.memory:
            return {"Status": "FINISH", "Comment": f"typed {KEY}"}
        call = {"Function": "append", "Args": {"control_id": "field-1", "text": "${secret:password}"}}
        return {**call, "Status": "CONTINUE"}

    supervisor = start(app=FunctionModel(work), servers=[MemoryServer(window)])
    secrets = {"password": SecretStr(KEY)}
    handle = supervisor.submit(Task(request=f"type {KEY}", target=window.id, labels={"k": KEY}, secrets=secrets))
    result = handle.result(PATIENCE)
    shown = [handle, result, *result.subtasks, *handle.events(), supervisor, supervisor.status(), supervisor.health()]
    assert result.ok
    assert not any(leaks(repr(each)) or leaks(str(each)) for each in shown)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Task(request="x", secrets={"p": {"value": KEY, "tols": ["a"]}}),
        lambda: Task(request="x", secrets={"p": [KEY]}),
        lambda: Task(request="", secrets={"p": KEY}),
        lambda: Secret(value=[KEY]),
        lambda: Settings.load(secrets={"p": [KEY]}),
        lambda: Settings.load(providers={"p": {"url": "http://x", "api_key": [KEY]}}),
        lambda: Settings.load(providers={"p": {"url": "http://x", "headers": KEY}}),
    ],
)
def test_no_error_about_a_value_shows_it(make):
    with pytest.raises((ValidationError, SettingsError)) as caught:
        make()
    assert not leaks(f"{caught.value} {caught.value!r}")


def test_no_refusal_shows_a_secret(start, window):
    supervisor = start(app=FunctionModel(lambda request: {"Status": "FINISH"}), servers=[MemoryServer(window)])
    secrets = {"password": SecretStr(KEY)}
    first = Task(request=f"type {KEY}", target=window.id, key=f"key {KEY}", secrets=secrets)
    supervisor.submit(first).result(PATIENCE)
    others = [
        Task(request="another", target=window.id, key=f"key {KEY}", secrets=secrets),
        Task(request=f"\udcff{KEY}", target=window.id, secrets=secrets),
    ]
    for other in others:
        with pytest.raises((TaskRefusedError, ValueError)) as caught:
            supervisor.submit(other)
        assert not leaks(f"{caught.value} {caught.value!r}")
    with pytest.raises((NotAllTakenError, ValueError, TaskRefusedError)) as caught:
        supervisor.submit_all([first.model_copy(update={"id": "a"}), others[0]])
    assert not leaks(repr(caught.value))
