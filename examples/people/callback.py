"""A person in the loop, by callback.

A function receives every event of a task on its own thread, and answers questions and approvals.
"""

from __future__ import annotations

from callboard import Event, EventName, ScriptedModel, Settings, Supervisor, Task, answers
from callboard.testing import MemoryServer

SCRIPT = {
    "app/memo/one": [
        answers.ask("Which greeting?", "hello", "goodbye"),
        answers.act("append", control="field-1", text="hello"),
        answers.finish(),
    ]
}
POLICY = [{"verdict": "approve", "tool": "append", "reason": "appended text stays"}]


def main() -> None:
    """Answer one question, approve one action."""
    window = MemoryServer.window()
    settings = Settings.load(policy=POLICY)
    models = {"app": ScriptedModel(SCRIPT)}
    with Supervisor.start(settings, models=models, servers=[MemoryServer(window)]) as supervisor:
        handle = supervisor.submit(Task(request="greet the reader", target=window.id))

        def decide(event: Event) -> None:
            if event.name is EventName.QUESTION_ASKED:
                for question in handle.questions():
                    first = question.questions[0]
                    print(f"{question.address} asks: {first.text} {' or '.join(first.choices)}? I say hello.")
                    handle.answer(question.id, "hello", by="ada")
            if event.name is EventName.APPROVAL_REQUESTED:
                for request in handle.approvals():
                    action = request.actions[0]
                    print(f"{request.address} wants to {action.tool} {action.arguments}: {request.reason}. I agree.")
                    handle.approve(request.id, by="ada")

        supervisor.subscribe(decide, after=0, task_id=handle.task_id)
        print(f"The task {handle.result().outcome.value}.")


if __name__ == "__main__":
    main()
