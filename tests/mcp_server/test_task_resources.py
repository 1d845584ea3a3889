"""Results and files of tasks, read as resources."""

from __future__ import annotations

import base64
import json
import os

import pytest
from mcp import MCPError

from callboard.testing import MemoryServer
from support import ASK, FINISH, PNG, append

RUN = {"request": "make it"}


@pytest.fixture
def written(desk, workspace):
    """Start a supervisor whose HostAgent makes a document."""
    create = {"Status": "FINISH", "Actions": [{"function": "create_document", "arguments": {"path": "new.csv"}}]}
    return desk({"ann": {}, "bob": {}}, host=lambda _: create, documents={"workspace": workspace})


async def made(client):
    report = (await client.call_tool("run_task", RUN)).structured_content
    assert (report["outcome"], report["files_made"]) == ("finished", ["new.csv"]), report
    return report


async def test_result_and_file_of_a_task_are_resources(written, workspace):
    async with written.client("ann") as client:
        report = await made(client)
        (uri,) = report["artifacts"]
        (content,) = (await client.read_resource(uri)).contents
        assert base64.b64decode(content.blob) == (workspace / "new.csv").read_bytes()
        (result,) = (await client.read_resource(f"callboard://tasks/{report['task_id']}/result")).contents
        assert json.loads(result.text)["outcome"] == "finished"


async def test_resources_of_another_caller_are_unknown(written):
    async with written.client("ann") as ann, written.client("bob") as bob:
        report = await made(ann)
        for uri in (report["artifacts"][0], f"callboard://tasks/{report['task_id']}/result"):
            with pytest.raises(MCPError, match="there is no task"):
                await bob.read_resource(uri)


@pytest.mark.parametrize("change", ["link", "pipe", "folder", "large", "gone"])
async def test_a_replaced_file_is_not_read(written, workspace, tmp_path, change):
    async with written.client("ann") as client:
        report = await made(client)
        file = workspace / "new.csv"
        file.unlink()
        if change == "link":
            file.symlink_to(tmp_path / "secret.csv")
        elif change == "pipe":
            os.mkfifo(file)
        elif change == "folder":
            file.mkdir()
        elif change == "large":
            file.touch()
            os.truncate(file, 10_000_001)
        with pytest.raises(MCPError, match=r"new\.csv"):
            await client.read_resource(report["artifacts"][0])


@pytest.mark.parametrize("end", ["artifacts/1", "artifacts/-1", "artifacts/x", "artifacts/..%2F0", "nothing"])
async def test_other_resources_are_unknown(written, end):
    async with written.client("ann") as client:
        report = await made(client)
        with pytest.raises(MCPError):
            await client.read_resource(f"callboard://tasks/{report['task_id']}/{end}")


async def test_number_of_a_file_may_have_any_length(written):
    async with written.client("ann") as client:
        report = await made(client)
        with pytest.raises(MCPError, match="the number of the task's files is 1"):
            await client.read_resource(f"callboard://tasks/{report['task_id']}/artifacts/{'9' * 5_000}")


async def test_descriptions_of_resources_have_no_indentation(written):
    async with written.client("ann") as client:
        templates = (await client.list_resource_templates()).resource_templates
    assert [template.name for template in templates] == ["result", "artifact"]
    assert not any("  " in template.description for template in templates)


async def test_an_open_task_has_no_result_yet(desk):
    async with desk(app=[ASK, append("x", "FINISH")]).client() as client:
        report = (await client.call_tool("run_task", {**RUN, "target": "memo:one"})).structured_content
        with pytest.raises(MCPError, match="not over"):
            await client.read_resource(f"callboard://tasks/{report['task_id']}/result")


class Pictured(MemoryServer):
    """A window with a picture."""

    def observe(self, target):
        """Add a picture."""
        seen = super().observe(target)
        return seen.model_copy(update={"picture": PNG})


SEEN = {"request": "look", "target": "memo:one"}


async def test_pictures_are_resources_by_an_explicit_right(desk):
    rights = {"ann": {"pictures": True}, "bob": {"pictures": True}, "cy": {}}
    opened = desk(rights, app=[append("x"), FINISH], servers=[Pictured(MemoryServer.window())])
    async with opened.client("ann") as ann, opened.client("bob") as bob, opened.client("cy") as cy:
        task_id = (await ann.call_tool("run_task", SEEN)).structured_content["task_id"]
        base = f"callboard://tasks/{task_id}/pictures"
        (listing,) = (await ann.read_resource(base)).contents
        listed = json.loads(listing.text)
        digests = [entry["uri"].rpartition("/")[2] for entry in listed["pictures"]]
        assert (len(digests), listed["left_out"]) == (1, 0)
        assert listed["pictures"][0]["run"] == f"{task_id}~1"
        (picture,) = (await ann.read_resource(listed["pictures"][0]["uri"])).contents
        assert (base64.b64decode(picture.blob), picture.mime_type) == (PNG, "image/png")
        for strange in ("0" * 64, "..", "x", digests[0].upper()):
            with pytest.raises(MCPError):
                await ann.read_resource(f"{base}/{strange}")
        own = (await bob.call_tool("run_task", SEEN | {"dry_run": True})).structured_content["task_id"]
        for client, task in ((bob, task_id), (cy, task_id)):
            for uri in (f"callboard://tasks/{task}/pictures", f"callboard://tasks/{task}/pictures/{digests[0]}"):
                with pytest.raises(MCPError):
                    await client.read_resource(uri)
        assert own != task_id
        templates = [template.name for template in (await cy.list_resource_templates()).resource_templates]
        assert templates == ["result", "artifact"]
