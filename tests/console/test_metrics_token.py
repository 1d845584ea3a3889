"""`/metrics` of a served console: its token is one of the settings."""

from __future__ import annotations

import re
import sys

import pytest

from callboard import Settings, Supervisor
from callboard.config import install_command
from callboard.console import ConsoleServer
from callboard.errors import SettingsError
from callboard.testing import MemoryServer
from support import FINISH

TOKEN = "a-token-of-a-monitor"
COUNTED = {"metrics": True, "metrics_token": TOKEN}


def bearer(token):
    return {"authorization": f"Bearer {token}"}


@pytest.mark.parametrize(
    "headers",
    [{}, {"authorization": ""}, bearer(""), bearer(f"{TOKEN}x"), bearer(TOKEN[:-1]), {"authorization": TOKEN}],
)
def test_metrics_need_the_token_of_the_settings(office, headers):
    served = office(app=lambda _: FINISH, observe=COUNTED)
    status, body, answered = served.ask("/metrics", headers=headers)
    assert (status, answered["www-authenticate"], "callboard" in body) == (401, "Bearer", False)
    assert served.ask("/metrics", headers=served.sign_in())[0] == 401
    status, body, _ = served.ask("/metrics", headers=bearer(TOKEN))
    assert (status, "callboard_tasks_total" in body) == (200, True)


def test_token_of_the_metrics_opens_nothing_else(office):
    served = office(app=lambda _: FINISH, observe=COUNTED)
    headers = {**bearer(TOKEN), "x-callboard-token": TOKEN, "cookie": f"callboard-{served.server.port}={TOKEN}"}
    for path in ("/", "/waiting", "/health", "/events"):
        assert served.ask(path, headers=headers)[0] == 401


def test_metrics_without_a_token_in_the_settings_do_not_exist(office):
    served = office(app=lambda _: FINISH, observe={"metrics": True})
    for headers in ({}, bearer(""), bearer("None")):
        assert served.ask("/metrics", headers=headers)[0] == 404


def test_journal_that_is_only_shown_has_no_metrics(office):
    served = office(app=lambda _: FINISH, observe=COUNTED)
    server = ConsoleServer(served.journal, port=0)
    server.start()
    served.server, working_server = server, served.server
    try:
        status, body, _ = served.ask("/metrics", headers=bearer(TOKEN))
    finally:
        server.stop()
        served.server = working_server
    assert (status, body) == (404, "metrics are counted by the process that works on this journal")


def test_missing_prometheus_client_is_refused_at_the_start(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    settings = Settings.load(journal={"path": tmp_path / "journal.db"}, observe=COUNTED)
    with pytest.raises(SettingsError, match=re.escape(install_command("prometheus"))):
        Supervisor.start(settings, models={"app": lambda _: FINISH}, servers=[MemoryServer(MemoryServer.window("one"))])
