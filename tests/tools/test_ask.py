import msgspec
import pytest
from tests.tools.desk import TOOLS, Desk, refused

from sylph.core.tool import UserQuestion


async def test_the_answers_come_back_beside_their_questions(desk: Desk) -> None:
    desk.answers = ["red", "as you like"]
    questions = [{"question": "Colour?", "choices": ["red", "blue"], "free_text": False}, {"question": "Size?"}]
    result = await desk.use("ask_user", questions=questions)
    assert result.text == "Colour?\n→ red\nSize?\n→ as you like"
    assert desk.asked == [UserQuestion(text="Colour?", choices=("red", "blue"), free=False), UserQuestion(text="Size?")]


@pytest.mark.parametrize(
    "question",
    [
        {"question": "Which?", "free_text": False},
        {"question": "Which?", "choices": ["only"], "free_text": False},
        {"question": "Which?", "choices": ["a", "a"]},
    ],
)
async def test_a_question_nobody_can_answer_is_not_asked(desk: Desk, question: dict[str, object]) -> None:
    with refused("bad_question"):
        await desk.use("ask_user", questions=[question])
    assert desk.asked == []


@pytest.mark.parametrize("number", [0, 5])
async def test_one_to_four_questions_at_once(desk: Desk, number: int) -> None:
    with pytest.raises(msgspec.ValidationError):
        await desk.use("ask_user", questions=[{"question": "?"}] * number)


def test_a_person_may_take_their_time() -> None:
    assert TOOLS["ask_user"].seconds is None
