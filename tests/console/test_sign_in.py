"""Links that sign in once, and sessions that survive a restart."""

from __future__ import annotations

import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.config import NotOwnError
from callboard.console._sign_in import LINK_SECONDS, SESSION_SECONDS, SignIns, key_beside


class Clock:
    """A clock that a test sets."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_link_signs_in_once(clock):
    sessions = SignIns(bytes(32), clock)
    link = sessions.new_link()
    assert [sessions.use_link(link), sessions.use_link(link), sessions.use_link("")] == [True, False, False]


def test_link_ends_after_its_time(clock):
    sessions = SignIns(bytes(32), clock)
    link = sessions.new_link()
    clock.now += LINK_SECONDS
    assert not sessions.use_link(link)


def test_link_of_another_process_with_the_key_signs_in_at_its_port_alone(clock):
    served, elsewhere = SignIns(bytes(32), clock, port=8437), SignIns(bytes(32), clock, port=8438)
    link = SignIns(bytes(32), clock, port=8437).new_link()
    assert not elsewhere.use_link(link)
    assert not served.use_link(SignIns(b"other" * 8, clock, port=8437).new_link())
    assert [served.use_link(link), served.use_link(link)] == [True, False]


def test_link_from_before_the_start_does_not_sign_in(clock):
    link = SignIns(bytes(32), clock).new_link()
    clock.now += 1
    assert not SignIns(bytes(32), clock).use_link(link)


@given(st.text(max_size=20), st.text(max_size=20))
def test_no_other_text_signs_in(first, second):
    sessions = SignIns(bytes(32))
    payload, _, signature = sessions.new_link().rpartition(".")
    for link in (first, f"{first}.{second}", f"{payload}.{first}", f"{payload}{first}x.{signature}"):
        assert not sessions.use_link(link)


def test_session_holds_after_a_restart_with_the_same_key(clock):
    cookie, token = SignIns(b"k" * 32, clock).start("ann")
    assert SignIns(b"k" * 32, clock).find(cookie, token).person == "ann"
    assert SignIns(b"other" * 8, clock).find(cookie, token) is None


def test_session_ends_after_its_time(clock):
    sessions = SignIns(bytes(32), clock)
    cookie, token = sessions.start("ann")
    clock.now += SESSION_SECONDS
    assert sessions.find(cookie, token) is None


def test_sign_in_with_the_cookie_of_a_session_renews_it(clock):
    sessions = SignIns(bytes(32), clock)
    cookie, token = sessions.start("ann")
    clock.now += SESSION_SECONDS - 1
    renewed_cookie, same_token = sessions.start("ann", ["x", cookie])
    clock.now += SESSION_SECONDS - 1
    assert same_token == token
    assert sessions.find(renewed_cookie, token).person == "ann"
    assert sessions.find(cookie, token) is None


@pytest.mark.parametrize("person", ["bob", "Ann"])
def test_sign_in_renews_no_session_of_another_person(clock, person):
    sessions = SignIns(bytes(32), clock)
    cookie, token = sessions.start("ann")
    other_cookie, other_token = sessions.start(person, [cookie])
    assert other_token != token
    assert sessions.find(other_cookie, token) is None


def test_cookie_and_token_must_be_of_one_session(clock):
    sessions = SignIns(bytes(32), clock)
    (cookie, token), (other_cookie, other_token) = sessions.start("ann"), sessions.start("ann")
    assert sessions.find(cookie, other_token) is None
    assert sessions.find(other_cookie, token) is None
    payload, _, signature = cookie.partition(".")
    for wrong in ("", ".", payload, f"{payload}.", f"{payload}.{token}", f"x{cookie}", "\udc80é.1", f"{signature}.x"):
        assert sessions.find(wrong, token) is None
    assert sessions.find(cookie, "") is None
    assert sessions.find(cookie, signature) is None


def test_key_is_kept_for_its_user_alone(tmp_path):
    journal = tmp_path / "journal.db"
    key = key_beside(journal)
    file = tmp_path / "journal.db.console-key"
    assert (stat.S_IMODE(file.stat().st_mode), file.read_bytes(), len(key)) == (0o600, key, 32)
    assert key_beside(journal) == key


def test_key_that_is_cut_is_made_again(tmp_path):
    journal = tmp_path / "journal.db"
    (tmp_path / "journal.db.console-key").write_bytes(b"short")
    assert len(key_beside(journal)) == 32


@pytest.mark.skipif(os.name != "posix", reason="the system has no modes of files")
@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_key_that_others_could_read_is_made_again(tmp_path, mode):
    file = tmp_path / "journal.db.console-key"
    file.write_bytes(bytes(32))
    file.chmod(mode)
    key = key_beside(tmp_path / "journal.db")
    assert (key != bytes(32), file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (True, key, 0o600)


def test_key_is_not_read_through_a_link(tmp_path):
    (tmp_path / "theirs").write_bytes(bytes(32))
    (tmp_path / "journal.db.console-key").symlink_to(tmp_path / "theirs")
    with pytest.raises(NotOwnError):
        key_beside(tmp_path / "journal.db")
    assert (tmp_path / "theirs").read_bytes() == bytes(32)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_key_is_not_read_from_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "journal.db.console-key")
    with pytest.raises(NotOwnError):
        key_beside(tmp_path / "journal.db")
