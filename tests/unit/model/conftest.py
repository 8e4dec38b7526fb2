"""What the unit tests of the model share."""

import sys
import threading

import pytest


@pytest.fixture
def together():
    """Run functions in one thread each, at the same time, and fail on whatever one of them raises.

    Threads are switched far more often than by default, so that a missing lock shows.
    """
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)

    def run(*works):
        faults = []
        start = threading.Barrier(len(works))

        def guarded(work):
            start.wait()
            try:
                work()
            except Exception as error:  # noqa: BLE001 - whatever a thread raises fails the test
                faults.append(error)

        threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not faults

    yield run
    sys.setswitchinterval(interval)
