"""The questions by which searches for tools are judged."""

import re

from tests.registry.everyday_questions import read_everyday_questions
from toolserver.registry.registry import Registry, Tier

QUESTIONS = read_everyday_questions()
REGISTRY = Registry.load("tools")


def test_there_are_sixty_different_questions():
    assert len({asked.question.casefold() for asked in QUESTIONS}) == 60


def test_twenty_questions_were_asked_in_a_public_thread():
    cited = [asked for asked in QUESTIONS if asked.thread]
    assert len(cited) == 20
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", asked.thread) for asked in cited)


def test_twenty_questions_are_held_out_of_tuning():
    assert sum(asked.held_out for asked in QUESTIONS) == 20


def test_every_free_tool_answers_a_question():
    free = {operation.name for operation in REGISTRY if operation.tier is Tier.FREE}
    assert free - {"find_tools"} <= {asked.tool for asked in QUESTIONS}


def test_some_questions_are_for_priced_payment_and_account_tools():
    tiers = [REGISTRY[asked.tool].tier for asked in QUESTIONS]
    assert min(tiers.count(tier) for tier in (Tier.PREMIUM, Tier.PAYMENT, Tier.ACCOUNT)) >= 3
