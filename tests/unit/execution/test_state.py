"""The transition tables: every entry is used by real runs, and nothing else is let through."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from graphrun.errors import TransitionError
from graphrun.execution.state import (
    NODE_TRANSITIONS,
    RUN_TRANSITIONS,
    TERMINAL_NODE,
    TERMINAL_RUN,
    NodeState,
    RunState,
    Trigger,
    next_node_state,
    next_run_state,
)

from .cases import random_case
from .driver import Driver
from .test_against_oracle import ask_at_random


def test_every_entry_of_both_tables_is_exercised_by_runs():
    node_moves, run_moves = set(), set()
    for seed in range(150):
        random = Random(seed)
        policy = random.choice(("proceed", "fail_fast"))
        case = random_case(random, 8, policy=policy, evolving=True)
        log = Driver(case, random, ask=ask_at_random, early_gates=True).finish().log
        node_moves |= log.node_moves
        run_moves |= log.run_moves
    assert node_moves == set(NODE_TRANSITIONS)
    assert run_moves == set(RUN_TRANSITIONS)


@pytest.mark.parametrize(("state", "trigger"), [*product(NodeState, Trigger)])
def test_a_node_moves_by_the_table_or_not_at_all(state, trigger):
    if (state, trigger) in NODE_TRANSITIONS:
        assert next_node_state(state, trigger) is NODE_TRANSITIONS[state, trigger]
    else:
        with pytest.raises(TransitionError, match=f"a node that is {state} cannot {trigger}"):
            next_node_state(state, trigger)


@pytest.mark.parametrize(("state", "trigger"), [*product(RunState, Trigger)])
def test_a_run_moves_by_the_table_or_not_at_all(state, trigger):
    if (state, trigger) in RUN_TRANSITIONS:
        assert next_run_state(state, trigger) is RUN_TRANSITIONS[state, trigger]
    else:
        with pytest.raises(TransitionError, match=f"a run that is {state} cannot {trigger}"):
            next_run_state(state, trigger)


def test_nothing_leads_out_of_a_final_state():
    assert not [move for move in NODE_TRANSITIONS if move[0] in TERMINAL_NODE]
    assert not [move for move in RUN_TRANSITIONS if move[0] in TERMINAL_RUN]
