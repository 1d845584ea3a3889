"""Log lines for the host program's logging, however it handles them."""

from __future__ import annotations

import logging

import pytest

from callboard.config import HostLog


class Down(logging.Handler):
    """A handler whose server is down."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def emit(self, _record):
        raise self.error


@pytest.fixture
def log():
    return HostLog()


def test_a_line_goes_to_callboards_logger_with_its_place_and_the_exception(log, caplog):
    try:
        {}["t"]
    except KeyError as error:
        log.exception("a reading of %s failed", "t")
        raised = error
    (record,) = caplog.records
    assert (record.name, record.levelname, record.getMessage()) == ("callboard", "ERROR", "a reading of t failed")
    assert (record.funcName, record.exc_info[1]) == (
        "test_a_line_goes_to_callboards_logger_with_its_place_and_the_exception",
        raised,
    )


@pytest.mark.parametrize("error", [ConnectionError("down"), SystemExit()], ids=["ConnectionError", "SystemExit"])
def test_host_handler_that_raises_does_not_disturb_the_log(log, caplog, error):
    handler = Down(error)
    logging.getLogger().addHandler(handler)
    try:
        log.error("first")
        log.warning("second")
    finally:
        logging.getLogger().removeHandler(handler)
    assert caplog.messages == ["first", "second"]


def test_host_filter_that_raises_loses_only_its_own_record(log, caplog):
    def refuse(_record):
        raise ConnectionError

    logging.getLogger("callboard").addFilter(refuse)
    try:
        log.error("lost")
    finally:
        logging.getLogger("callboard").removeFilter(refuse)
    log.error("kept")
    assert caplog.messages == ["kept"]
