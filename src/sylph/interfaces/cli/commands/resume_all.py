"""`sylph resume --all`: everything that was left open goes on, a few at a time."""

import asyncio
import sys
from contextlib import AsyncExitStack

from sylph.app import App
from sylph.core.commands import Answer, Continue
from sylph.core.facts.tool_call import Asked
from sylph.core.facts.turn import TurnEnded
from sylph.core.text.formatting import count_noun
from sylph.engine.folds.session_state import SessionState
from sylph.engine.runtime.resume_result import ResumeResult
from sylph.engine.runtime.runtime import Runtime
from sylph.interfaces.cli.kit import exit_code
from sylph.interfaces.cli.kit.cli_context import print_json, print_text
from sylph.interfaces.cli.terminal.keyboard import Keyboard
from sylph.interfaces.cli.terminal.screen import TerminalScreen
from sylph.interfaces.cli.turn import question_prompt
from sylph.interfaces.cli.turn.follower import OpenQuestions, run_in_background
from sylph.interfaces.text.interrupted_turn import interrupted_task
from sylph.interfaces.text.render import one_line, styled_line


class TerminalPerson:
    """Whoever sits at the terminal, asked one thing at a time; where nobody does, that is the answer."""

    def __init__(self, app: App) -> None:
        terminal = app.config.terminal
        self._screen = TerminalScreen(sys.stdout, sys.stderr, colour=terminal.colour, dumb=terminal.dumb)
        self._keyboard = Keyboard.find()
        self._one = asyncio.Lock()

    async def answer_question(self, asked: Asked, summary: SessionState) -> Answer:
        async with self._one:
            if self._keyboard is None:
                return question_prompt.unattended_answer(asked)
            self._screen.print_lines([styled_line(f"{summary.id}  {one_line(summary.title)}", "bold")], always=True)
            return await question_prompt.ask_person(asked, None, self._keyboard, self._screen)


async def resume_all(app: App, *, quiet: bool, as_json: bool) -> int:
    app.unlock_credentials()
    left = await app.runtime.list_resumable()
    tasks = {one.id: one_line(await interrupted_task(app.runtime, one)) for one in left}
    person, done = TerminalPerson(app), list[ResumeResult]()
    async with AsyncExitStack() as stack:
        for one in left:
            await stack.enter_async_context(run_in_background(_answer_questions(app.runtime, one, person)))
        async for resumed in app.runtime.resume_all():
            done.append(resumed)
            if not as_json and not quiet:
                print_text(f"{resumed.session}  {outcome_text(resumed)}  {tasks.get(resumed.session, '')}")
                sys.stdout.flush()
    if as_json:
        print_json({"resumed": done})
    elif not done:
        print_text("Nothing was left open.")
    return next((code for one in done if (code := exit_code_for(one))), 0)


async def _answer_questions(runtime: Runtime, summary: SessionState, person: TerminalPerson) -> None:
    questions = OpenQuestions(runtime, summary.id, lambda asked: person.answer_question(asked, summary))
    try:
        async for event in runtime.watch(summary.id, after=summary.seq):
            questions.handle_event(event)
    finally:
        questions.cancel_all()


def outcome_text(resumed: ResumeResult) -> str:
    """What came of it, in a few words."""
    late = f", {count_noun(resumed.undelivered, 'notification')} not delivered yet" if resumed.undelivered else ""
    why = f": {one_line(resumed.trouble.message, 100)}" if resumed.trouble else ""
    match resumed.state:
        case "ended":
            return f"{resumed.outcome}{why}{late}"
        case "delivered":
            return "delivered" if not late else late.removeprefix(", ")
        case "elsewhere":
            return "another process goes on with it"
        case "open":
            return f"still open{why}"


def exit_code_for(resumed: ResumeResult) -> int:
    if resumed.state == "open" or (resumed.state == "delivered" and resumed.undelivered):
        return exit_code.for_error_report(resumed.trouble) if resumed.trouble else exit_code.FAILED.number
    if resumed.outcome is None:
        return 0
    return exit_code.for_turn(TurnEnded(outcome=resumed.outcome, trouble=resumed.trouble))


async def deliver_notifications(app: App, summary: SessionState, *, as_json: bool) -> int:
    """Sends what one session holds for the person; no turn of it is open."""
    await app.runtime.send(summary.id, Continue())
    await app.runtime.wait_until_idle(summary.id)
    await app.runtime.wait_for_deliveries()
    waiting = len((await app.runtime.find_session(summary.id)).outbox)
    lost = app.runtime.failed_deliveries(summary.id, after=summary.seq)
    sent = len(summary.outbox) - waiting - len(lost)
    if as_json:
        print_json({"session": summary.id, "delivered": sent, "waiting": waiting, "given_up": lost})
    else:
        print_text(
            f"{summary.id}: {count_noun(sent, 'notification')} delivered, {waiting} not yet, {len(lost)} given up."
        )
        sys.stderr.writelines(f"sylph: {one_line(one.trouble.message, 200)}\n" for one in lost)
    return exit_code.FAILED.number if waiting or lost else 0
