"""A custom kind of agent: an editor that reviews its own work."""

from __future__ import annotations

from typing import Any, ClassVar

from callboard import FunctionModel, ModelRequest, Supervisor, Task, tool
from callboard.kinds import ON_TARGET, AgentSpec, AppAgentStateManager, By, Table, WorkingState
from callboard.surface import Effect
from callboard.testing import MemoryServer


class EditorStateManager(AppAgentStateManager):
    """The AppAgent's machine with one more state; the others are inherited."""

    initial = "CONTINUE"
    transitions: ClassVar[Table] = {
        **AppAgentStateManager.transitions,
        "CONTINUE": {**AppAgentStateManager.transitions["CONTINUE"], "REVIEW": By.MODEL},
        "REVIEW": dict(AppAgentStateManager.transitions["CONTINUE"]),
    }


@EditorStateManager.register("REVIEW")
class ReviewState(WorkingState):
    """Look at the finished text, and either finish or continue."""

    __slots__ = ()


class Memos(MemoryServer):
    """Memos in memory, for AppAgents and editors."""

    @tool(effect=Effect.IDEMPOTENT, agents=("editor",))
    def rewrite(self, target: str, control_id: str, text: str) -> str:
        """Replace a field's text."""
        return self.write(target, control_id, text)


def model(request: ModelRequest) -> dict[str, Any]:
    """Write a greeting, correct it in the review, and finish."""
    text = request.observation.controls[0].detail["text"]
    if request.status == "REVIEW":
        print(f"REVIEW: the memo says {text!r}")
        if text == "Helo":
            return {"Status": "CONTINUE", "Function": "rewrite", "ControlLabel": "field-1", "Args": {"text": "Hello"}}
        return {"Status": "FINISH", "Result": text}
    print(f"CONTINUE: the memo says {text!r}")
    if not text:
        return {"Status": "REVIEW", "Function": "rewrite", "ControlLabel": "field-1", "Args": {"text": "Helo"}}
    return {"Status": "REVIEW"}


EDITOR = AgentSpec(
    name="editor",
    machine=EditorStateManager,
    strategies=ON_TARGET,
    prompt="You edit memos, and review your own texts.",
)


def main() -> None:
    """Have an editor write a memo, without a network."""
    memo = MemoryServer.window().model_copy(update={"kinds": ("app", "editor")})
    with Supervisor.start(
        agents=[EDITOR], models={"editor": FunctionModel(model)}, servers=[Memos(memo)]
    ) as supervisor:
        result = supervisor.submit(Task(request="Greet the reader.", target=f"editor:{memo.id}")).result()
        print(f"{memo.name}: {result.outcome.value}")


if __name__ == "__main__":
    main()
