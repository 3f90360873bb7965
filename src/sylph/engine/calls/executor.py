"""Every tool call goes through here: find it, check it, have it allowed, run it, and always have a result."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sylph.core import facts, signals
from sylph.core.clock import Clock, SystemClock
from sylph.core.errors import CallRefused, ErrorReport, OutcomeUnknown, SylphError, ToolError
from sylph.core.messages import Image, ToolCall
from sylph.core.provider import ToolSpec
from sylph.core.tool import CallAssessment, Tool, ToolContext, ToolResult, UserQuestion
from sylph.engine.calls import interrupted_calls
from sylph.engine.calls.interrupted_calls import CallLeftOpen, finish_despite_cancel
from sylph.engine.calls.judged_call import JudgedCall, parse_arguments
from sylph.engine.calls.permission import ApprovalSettings, PermissionChecker
from sylph.engine.calls.session_port import SessionPort
from sylph.engine.calls.truncate import truncate_output
from sylph.engine.commands.jobs import SessionJobs
from sylph.engine.commands.runner_client import JournaledCommands, RunnerClient
from sylph.engine.folds.session_state import OpenCall, SessionState
from sylph.engine.log.crash_points import CrashPointHook, ignore_crash_point
from sylph.engine.log.hash_chain import output_digest
from sylph.engine.redact.redactor import NoRedaction
from sylph.engine.redact.stream import StreamRedactor
from sylph.engine.sandbox import CommandRights
from sylph.engine.undo.checkpoints import CheckpointWatcher, NoCheckpoints

GRACE = 5.0
# Looking through a longer output for secrets is left to a thread.
LONG_TEXT = 500_000

logger = logging.getLogger(__name__)


class CallLimits(Struct, frozen=True, kw_only=True):
    """How long any call may take at the most, and how much of its output is shown."""

    seconds: float = 3600.0
    lines: int = 2000
    bytes: int = 51_200
    memory: int = 0
    """Bytes that a command and its children may use together; 0 for no limit."""


class _Stopwatch:
    """Measures how long a call itself takes; a person who thinks about it is not counted."""

    def __init__(self, clock: Clock, call: str) -> None:
        self._clock, self._call = clock, call
        self.restart()

    def restart(self) -> None:
        self._began = self._clock.ticks()

    def elapsed_ms(self) -> int:
        return self._clock.elapsed_ms(self._began, self._call)


class ToolExecutor:
    def __init__(
        self,
        tools: Iterable[Tool],
        runner: RunnerClient,
        bounds: CallLimits | None = None,
        clock: Clock | None = None,
        trip: CrashPointHook = ignore_crash_point,
        consent: ApprovalSettings | None = None,
    ) -> None:
        self.runner, self._trip = runner, trip
        self.watch: CheckpointWatcher = NoCheckpoints()
        self.permits = PermissionChecker(consent or ApprovalSettings(), self.judge_call)
        self.tools: Mapping[str, Tool] = {tool.name: tool for tool in tools}
        self.specs: tuple[ToolSpec, ...] = tuple(tool.spec for tool in self.tools.values())
        self.names: Callable[[str], str] = lambda _: ", ".join(self.tools)
        """What a call is told there is; a replay knows what there was then."""
        self.bounds = bounds or CallLimits()
        self._clock = clock or SystemClock()
        self.redactor = NoRedaction()

    def prewarm_tool(self, name: str, workspace: str) -> None:
        """A call of this tool is on its way."""
        tool = self.tools.get(name)
        if tool and tool.recourse == "by_probe":
            self.runner.ensure_started()
            self.watch.warm_up(workspace)

    def private_folder(self, session: str) -> Path:
        """Where tools keep what belongs to a session and not into its workspace."""
        return self.runner.folder.parent / "private" / session

    async def run_calls(self, calls: Sequence[ToolCall], desk: SessionPort) -> None:
        """Runs calls in their order; neighbours that only read run side by side."""
        await self._ask_ahead(calls, desk)
        for group in self._group_calls(calls, desk):
            await desk.wait_while_paused()
            if len(group) == 1:
                await self._run_call(group[0], desk)
                continue
            await _run_together([self._run_call(call, desk) for call in group])

    async def _ask_ahead(self, calls: Sequence[ToolCall], desk: SessionPort) -> None:
        """What a round needs a person for is asked at once, and not one call after the other."""
        if len(calls) < 2 or desk.summary.dry_run:
            return
        ready: list[JudgedCall] = []
        for call in calls:
            known = desk.summary.open_calls.get(call.id)
            if not (known and known.started):
                # What is wrong with a call is told when it is its turn.
                with suppress(ToolError):
                    ready.append(self.judge_call(call, desk))
        await self.permits.ask_ahead(ready, desk)

    def _group_calls(self, calls: Sequence[ToolCall], desk: SessionPort) -> list[list[ToolCall]]:
        if len(calls) == 1:
            return [list(calls)]
        groups: list[list[ToolCall]] = []
        parallel = False
        for call in calls:
            reads = self._only_reads(call, desk)
            if reads and parallel:
                groups[-1].append(call)
            else:
                groups.append([call])
            parallel = reads
        return groups

    def _only_reads(self, call: ToolCall, desk: SessionPort) -> bool:
        """Whether a call only looks and waits for nobody; one that cannot even be judged does nothing at all."""
        tool = self.tools.get(call.name)
        if tool is None or tool.effect != "read" or tool.seconds is None:
            return False
        try:
            return tool.judge is None or self.judge_call(call, desk).judged.effect == "read"
        except ToolError:
            return True

    async def abandon_calls(self, calls: Sequence[ToolCall], desk: SessionPort) -> None:
        """Writes down what can be known of calls that nobody goes on with. Nothing is run; what runs is ended."""
        for call in calls:
            tool = self.tools.get(call.name)
            if desk.summary.open_calls[call.id].started and tool and tool.recover:
                with suppress(CallLeftOpen):
                    await self._run_call(call, desk, self._learn_outcome)
        self.remove_journals(desk.summary)

    def remove_journals(self, summary: SessionState) -> None:
        """Removes the journals of commands whose results are in the log."""
        interrupted_calls.remove_journals(self.runner, summary.id, summary.open_calls)

    async def _learn_outcome(self, call: ToolCall, desk: SessionPort, _: "_Stopwatch") -> ToolResult:
        await interrupted_calls.end_command(self.runner, _journal_key(desk, call))
        return await self._recover_result(self.judge_call(call, desk)) or interrupted_calls.NO_EFFECT

    async def _run_call(
        self, call: ToolCall, desk: SessionPort, learn: Callable[..., Awaitable[ToolResult]] | None = None
    ) -> None:
        watch = _Stopwatch(self._clock, call.id)
        try:
            result = await (learn or self._obtain_result)(call, desk, watch)
        except ToolError as error:
            result = ToolResult(text=_render_error(error.trouble), ok=False, trouble=error.trouble)
        except SylphError:
            raise
        except Exception as error:
            logger.exception("tool %s failed", call.name)
            trouble = ErrorReport("tool_crashed", f"{call.name} failed: {type(error).__name__}: {error}")
            result = ToolResult(text=_render_error(trouble), ok=False, trouble=trouble)
        result = _note_edited_arguments(desk.summary.open_calls.get(call.id), result)
        # Before it is cut: half a secret is not known for one.
        result = replace(result, text=await self._redact_text(result.text))
        shaped = truncate_output(result.text, call.id, lines=self.bounds.lines, size=self.bounds.bytes)
        images = {output_digest(picture.data): picture for picture in result.images}
        finished = facts.ToolFinished(
            call=call.id,
            ok=result.ok,
            output=shaped.text,
            exit=result.exit,
            trouble=result.trouble,
            ms=watch.elapsed_ms(),
            whole=shaped.digest,
            whole_bytes=len(shaped.whole),
            dry=result.dry,
            images=tuple(
                Image(digest, picture.media, len(picture.data), picture.name) for digest, picture in images.items()
            ),
        )
        whole = [(shaped.digest, shaped.whole)] if shaped.digest else []
        pictures = [(digest, picture.data) for digest, picture in images.items()]
        changed = await self.watch.after_call(desk.summary.id, call.id, desk.summary.workspace, ok=result.ok)
        await desk.emit(*changed, finished, blobs=[*whole, *pictures])
        self._trip("effect told")
        self.watch.release_call(desk.summary.id, call.id)
        self.runner.remove_journal(_journal_key(desk, call))
        self._trip("effect forgotten")

    async def _redact_text(self, text: str) -> str:
        """Without its secrets; a very long text does not hold up everything else meanwhile."""
        return (
            self.redactor.redact_text(text)
            if len(text) < LONG_TEXT
            else await asyncio.to_thread(self.redactor.redact_text, text)
        )

    async def _obtain_result(self, call: ToolCall, desk: SessionPort, watch: "_Stopwatch") -> ToolResult:
        ready = self.judge_call(call, desk)
        known = desk.summary.open_calls.get(call.id)
        # What had started when the process died is run again only if it surely had no effect.
        doubtful = known and known.started and not _is_repeatable(ready.tool)
        if doubtful and (result := await self._recover_result(ready)):
            return result
        ready = await self._permit_call(ready, desk)
        watch.restart()
        return await self._perform_call(ready, desk)

    async def _recover_result(self, ready: JudgedCall) -> ToolResult | None:
        if ready.tool.recover:
            return await ready.tool.recover(ready.args, ready.context)
        raise OutcomeUnknown(
            "Sylph was stopped while this call ran. Whether it took effect is not known.",
            next=["Find out what happened (look at the files, the process, the service) before doing it again."],
        )

    def judge_call(self, call: ToolCall, desk: SessionPort) -> JudgedCall:
        tool = self.tools.get(call.name)
        if tool is None:
            raise ToolError(
                f"There is no tool {call.name!r}.", kind="unknown_tool", next=[f"Known tools: {self.names(call.id)}."]
            )
        arguments = self.redactor.restore_arguments(call.arguments)
        args = parse_arguments(tool, arguments)
        context = self._build_context(call, tool, desk)
        judged = tool.judge(args, context) if tool.judge else CallAssessment(tool.effect, tool.risk)
        judged = self._redact_assessment(self.permits.raise_path_risk(judged), secret=arguments is not call.arguments)
        ready = JudgedCall(call, tool, args, judged, context)
        return self._bind_command_rights(ready, desk)

    def _redact_assessment(self, judged: CallAssessment, *, secret: bool) -> CallAssessment:
        """A judgement in the words of the log. To send a secret away is dangerous, wherever to."""
        commands = tuple(map(self.redactor.redact_text, judged.commands))
        if secret and judged.effect == "external":
            judged = replace(judged, risk="dangerous", why=f"sends a secret away; {judged.why}".removesuffix("; "))
        return replace(judged, commands=commands) if commands != judged.commands else judged

    def _bind_command_rights(self, ready: JudgedCall, desk: SessionPort) -> JudgedCall:
        """The call with hands that can do no more than what it was judged to do."""
        summary, context = desk.summary, ready.context
        rights = CommandRights(
            workspace=context.workspace,
            private=context.private,
            effect=ready.judged.effect,
            outside=ready.judged.outside,
            off=not summary.sandbox,
            strict=summary.mode == "sandbox",
        )
        runs = JournaledCommands(self.runner, _journal_key(desk, ready.call), rights)
        jobs = SessionJobs(self.runner, summary.id, rights)
        return replace(ready, context=replace(context, runner=runs, jobs=jobs))

    def _build_context(self, call: ToolCall, tool: Tool, desk: SessionPort) -> ToolContext:
        known = desk.summary.open_calls.get(call.id)

        def output(text: str) -> None:
            desk.publish_signal(signals.ToolOutput(call=call.id, text=text))

        async def ask(questions: Sequence[UserQuestion]) -> Sequence[str]:
            # All at once, and none is left open: whoever answers sees everything, also when one stays unanswered.
            asking = (_ask_question(question, call, desk) for question in questions)
            answers = await asyncio.gather(*asking, return_exceptions=True)
            for answer in answers:
                if isinstance(answer, BaseException):
                    raise answer
            return [answer for answer in answers if isinstance(answer, str)]

        return ToolContext(
            session=desk.summary.id,
            call=call.id,
            workspace=Path(desk.summary.workspace),
            seconds=self.bounds.seconds if tool.seconds is None else min(tool.seconds, self.bounds.seconds),
            output=StreamRedactor(self.redactor, output),
            emit=desk.emit,
            ask=ask,
            full_output=desk.full_output,
            runner=JournaledCommands(self.runner, _journal_key(desk, call)),
            jobs=SessionJobs(self.runner, desk.summary.id),
            private=self.private_folder(desk.summary.id),
            notify=lambda notice: desk.record_notice(notice, call.id),
            memory=self.bounds.memory,
            foreseen={self.redactor.restore_text(key): value for key, value in known.foreseen.items()} if known else {},
        )

    async def _permit_call(self, ready: JudgedCall, desk: SessionPort) -> JudgedCall:
        """Writes the decision down, and that the call starts: on the disk before an effect can be."""
        ready, decided = await self.permits.permit_call(ready, desk)
        effect = ready.judged.effect != "read" and not desk.summary.dry_run
        foreseen = dict[str, str]()
        if effect and ready.tool.foresee:
            foreseen.update(await ready.tool.foresee(ready.args, ready.context))
        started = facts.ToolStarted(
            call=ready.call.id, effect=ready.judged.effect, recourse=ready.tool.recourse, foreseen=foreseen
        )
        if effect:
            await self.watch.before_call(desk.summary.id, ready.call.id, desk.summary.workspace, ready.judged)
        await desk.emit(decided, started, durable=effect)
        return ready

    async def _perform_call(self, ready: JudgedCall, desk: SessionPort) -> ToolResult:
        if desk.summary.dry_run and ready.judged.effect != "read":
            return ToolResult(text=f"[dry run: nothing was changed]\n{await ready.render_preview()}", dry=True)
        limit = None if ready.tool.seconds is None else ready.context.seconds + GRACE
        timer = asyncio.timeout(limit)
        try:
            async with timer:
                self._trip("effect before")
                run = ready.tool.run(ready.args, ready.context)
                result = await (finish_despite_cancel(run, timer) if ready.tool.recourse == "by_content" else run)
                self._trip("effect after")
                return result
        except TimeoutError as error:
            if not timer.expired():
                raise
            raise ToolError(f"{ready.tool.name} took longer than {limit:.0f} s.", kind="timeout") from error
        finally:
            if isinstance(ready.context.output, StreamRedactor):
                ready.context.output.flush()


def _is_repeatable(tool: Tool) -> bool:
    """Whether a call does no harm when it is made again: it has no effect, or whoever has it knows it by its key."""
    return tool.recourse == "pure" or (tool.recourse == "by_key" and tool.recover is None)


async def _run_together(runs: Sequence[Coroutine[Any, Any, None]]) -> None:
    try:
        async with asyncio.TaskGroup() as tasks:
            for run in runs:
                tasks.create_task(run)
    except BaseExceptionGroup as group:
        # The first failure tells the story; the others are its echo.
        raise group.exceptions[0] from group


def _journal_key(desk: SessionPort, call: ToolCall) -> str:
    """What the journal of a call's command is called."""
    return f"{desk.summary.id}.{call.id}"


def _note_edited_arguments(call: OpenCall | None, result: ToolResult) -> ToolResult:
    """The model hears what was run instead of what it called."""
    if not (call and call.edited):
        return result
    note = f"[the user changed the arguments to {call.arguments}]\n"
    return result if result.text.startswith(note) else replace(result, text=note + result.text)


async def _ask_question(question: UserQuestion, call: ToolCall, desk: SessionPort) -> str:
    answered = await desk.ask_user(
        lambda id: facts.Asked(
            id=id,
            kind="question",
            question=question.text,
            choices=question.choices,
            free=question.free,
            call=call.id,
        )
    )
    if answered.by == "nobody":
        raise CallRefused(
            f"Nobody answered: {answered.reason or 'no person is there'}.",
            kind="nobody_there",
            next=["Decide yourself with the safest assumption, and say which one you made."],
        )
    return answered.answer


def _render_error(trouble: ErrorReport) -> str:
    """A trouble in the words the model reads."""
    said = "Outcome unknown" if trouble.kind == OutcomeUnknown.kind else f"Error ({trouble.kind})"
    lines = [f"{said}: {trouble.message}"]
    lines += [f"{key}: {value}" for key, value in trouble.details.items()]
    lines += [f"Next: {action}" for action in trouble.next]
    return "\n".join(lines)
