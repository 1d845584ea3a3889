"""The secrets of the console stand nowhere where an agent's tool reads."""

from __future__ import annotations

import json
from pathlib import Path

from support import FINISH, PATIENCE, lone


def test_secret_of_a_link_stands_in_no_argument_file_or_event(office, tmp_path, caplog):
    caplog.set_level(0)
    place = office(app=lambda _: FINISH, log={"file": tmp_path / "callboard.log", "level": "debug"})
    events = []
    place.supervisor.subscribe(events.append)
    link = place.server.link().partition("#")[2]
    session = place.ask("/session", method="POST", body={"link": link}, headers={"origin": place.origin})
    secrets = [link, json.loads(session[1])["token"], session[2]["set-cookie"].partition("=")[2].partition(";")[0]]
    place.supervisor.submit(lone()).result(PATIENCE)
    place.server.stop()
    place.supervisor.stop()
    texts = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    texts += [Path(f"/proc/self/{name}").read_bytes() for name in ("cmdline", "environ")]
    texts += [str(events).encode(), caplog.text.encode()]
    assert (tmp_path / "callboard.log").read_bytes() in texts
    assert not [secret for secret in secrets for text in texts if secret.encode() in text]
