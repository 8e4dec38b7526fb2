"""Signals: the first one ends a command in order."""

from __future__ import annotations

import os
import signal

import pytest

from graphrun.cli.interrupts import Interrupted, stopped_by_signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_ends_the_block(number):
    with pytest.raises(Interrupted) as caught, stopped_by_signals():
        os.kill(os.getpid(), number)
    assert caught.value.code == 128 + number


def test_further_signals_do_not_disturb_the_ending():
    ended = False
    with pytest.raises(Interrupted), stopped_by_signals():
        try:
            os.kill(os.getpid(), signal.SIGINT)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGTERM)
            ended = True
    assert ended


def test_handlers_are_given_back():
    before = signal.getsignal(signal.SIGTERM)
    with stopped_by_signals():
        pass
    assert signal.getsignal(signal.SIGTERM) is before
