from __future__ import annotations

import itertools

import pytest

from workers.model import answers

GROWTH = (
    "Month 0: revenue of $1,000 and expenses of $1,000. Over months 1 to 2 revenue grows by 10% "
    "and expenses by 5.5%."
)
QUESTION = "In April 2024, how many customers did we have in total?"
VALUES = [
    "Our monthly average is 361,250 customers.",
    "Customers last month were 351,340, with a revenue of $2400 each.",
    "March total was 325,401 customers. April had 3,710 active customers with the name John.",
    "April 2024 brought 21,604 new customers.",
    "The customer total for April 2024 is 352,345.",
]


def test_growth_is_computed() -> None:
    content = answers.growth(GROWTH)
    assert content is not None
    revenue, expenses, profit = content.splitlines()
    assert revenue == "Revenue in month 2: $1,210"
    assert expenses == "Expenses in month 2: $1,113"
    assert profit.endswith(": $142")  # (1100 - 1055) + (1210 - 1113.025)


@pytest.mark.parametrize(
    ("text", "total"),
    [
        ("12 software licenses at $37 per license each month", "$5,328"),
        ("3 licences, 10 dollars a month each", "$360"),
    ],
)
def test_yearly_prices(text: str, total: str) -> None:
    assert answers.yearly_price(text) == f"The annual total is {total}."


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("ALPHA request: what is (17 * 19) + 23?", "ALPHA: 346"),
        ("BETA request: (84 / 7) + 29", "BETA: 41"),
        ("GAMMA request: (10 - 4) × 2", "GAMMA: 12"),
        ("OMEGA request: (1 ÷ 3) * 3", "OMEGA: 1"),
        ("what is (1 + 2) * 3?", None),
        ("DELTA request: what is love?", None),
    ],
)
def test_labelled_sums(text: str, answer: str | None) -> None:
    assert answers.labelled_sum(text) == answer


def test_mixed_signs_in_brackets_are_not_guessed_at() -> None:
    assert answers.labelled_sum("SIGMA request: (2 + 3 * 4) - 1") is None
    assert answers.labelled_sum("SIGMA request: (2 * 3 / 4) - 1") == "SIGMA: 1/2"
    assert answers.labelled_sum("SIGMA request: (2 - 3 - 4) / 0") is None


def test_the_one_entry_that_answers_in_any_order() -> None:
    for entries in itertools.permutations(VALUES):
        content = answers.total_of_month(QUESTION, entries)
        assert content == "We had 352,345 customers in total in April 2024."


def test_no_entry_answers() -> None:
    assert answers.total_of_month(QUESTION, VALUES[:4]) is None
    assert answers.total_of_month(QUESTION, []) is None
    assert answers.total_of_month(QUESTION.replace("April", "May"), VALUES) is None
    assert answers.total_of_month("How many in total?", VALUES) is None


def test_reports() -> None:
    request = "Wait for all. Give me a synthesis of (East + West - loss) * factor."
    reports = ["East stands at 2, West at 3.", "a loss of 1, before the factor", ""]
    assert answers.wanted_inputs(request) == ("East", "West", "loss", "factor")
    assert answers.wanted_inputs("What is (East + West) * factor?") == ()
    assert answers.synthesis(request, reports) is None
    content = answers.synthesis(request, [*reports, "the factor is 5"])
    assert content == "East 2, West 3, loss 1, factor 5. Final value: 20"
    labels = answers.wanted_inputs(request)
    found = [answers.inputs_of(labels, [text]) for text in (*reports, "factor: 5")]
    assert found == [{"East": 2, "West": 3}, {"loss": 1}, {}, {"factor": 5}]


def test_text_below() -> None:
    assert answers.text_below("Send the note below back.\n\nA\n\n- b\n- c\n") == "A\n\n- b\n- c"
    assert answers.text_below("Send the note below back.\n\n") is None
    assert answers.text_below("Send it back.\n\nA") is None


def test_bots_are_named_with_what_they_do() -> None:
    text = "A status of two lines: Red Ink Bot has failed the test; Blue Ink Bot sleeps. Thanks."
    assert answers.bot_status(text) == "Red Ink Bot has failed the test.\nBlue Ink Bot sleeps."
    assert answers.bot_status("A status: Red Ink Bot has failed.") is None


def test_skill_facts() -> None:
    file = '# X\r\n\nCHECK_ID: chc-1 \nACTION:  Do "this". \n'
    assert answers.skill_facts(file) == 'The CHECK_ID is chc-1 and the ACTION is: Do "this".'
    assert answers.skill_facts("CHECK_ID: a") is None
    assert answers.skill_facts("") is None


@pytest.mark.parametrize(
    "answer",
    [
        answers.growth,
        answers.yearly_price,
        answers.text_below,
        answers.bot_status,
        answers.labelled_sum,
    ],
)
def test_other_requests_are_left_alone(answer: object) -> None:
    assert callable(answer)
    for text in ("", "Hello.", "In April 2024, how many customers did we have in total?"):
        assert answer(text) is None
