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
from sylph.core.errors import Refused, SylphError, ToolError, Trouble, Unknown
from sylph.core.messages import Image, ToolCall
from sylph.core.provider import ToolSpec
from sylph.core.tool import Context, Judged, Question, Result, Tool
from sylph.engine import leftovers
from sylph.engine.desk import Desk
from sylph.engine.jobs import SessionJobs
from sylph.engine.leftovers import LeftOpen, whole
from sylph.engine.permit import Consent, Permits
from sylph.engine.ready import Ready, parse
from sylph.engine.redact.stream import Hidden
from sylph.engine.redact.veil import Veil
from sylph.engine.runs import CallRuns, Runner
from sylph.engine.sandbox import Grip
from sylph.engine.shape import output_digest, shape
from sylph.engine.summary import OpenCall, Summary
from sylph.engine.trip import Trip, untripped
from sylph.engine.undo.checkpoints import Unwatched, Watcher

GRACE = 5.0
# Looking through a longer output for secrets is left to a thread.
LONG = 500_000

logger = logging.getLogger(__name__)


class Bounds(Struct, frozen=True, kw_only=True):
    """How long any call may take at the most, and how much of its output is shown."""

    seconds: float = 3600.0
    lines: int = 2000
    bytes: int = 51_200
    memory: int = 0
    """Bytes that a command and its children may use together; 0 for no limit."""


class _Watch:
    """Measures how long a call itself takes; a person who thinks about it is not counted."""

    def __init__(self, clock: Clock, call: str) -> None:
        self._clock, self._call = clock, call
        self.start()

    def start(self) -> None:
        self._began = self._clock.ticks()

    def ms(self) -> int:
        return self._clock.elapsed(self._began, self._call)


class Executor:
    def __init__(
        self,
        tools: Iterable[Tool],
        runner: Runner,
        bounds: Bounds | None = None,
        clock: Clock | None = None,
        trip: Trip = untripped,
        consent: Consent | None = None,
    ) -> None:
        self.runner, self._trip = runner, trip
        self.watch: Watcher = Unwatched()
        self.permits = Permits(consent or Consent(), self.ready)
        self.tools: Mapping[str, Tool] = {tool.name: tool for tool in tools}
        self.specs: tuple[ToolSpec, ...] = tuple(tool.spec for tool in self.tools.values())
        self.names: Callable[[str], str] = lambda _: ", ".join(self.tools)
        """What a call is told there is; a replay knows what there was then."""
        self.bounds = bounds or Bounds()
        self._clock = clock or SystemClock()
        self.veil = Veil()

    def warm(self, name: str, workspace: str) -> None:
        """A call of this tool is on its way."""
        tool = self.tools.get(name)
        if tool and tool.recourse == "by_probe":
            self.runner.warm()
            self.watch.warm(workspace)

    def private(self, session: str) -> Path:
        """Where tools keep what belongs to a session and not into its workspace."""
        return self.runner.folder.parent / "private" / session

    async def run(self, calls: Sequence[ToolCall], desk: Desk) -> None:
        """Runs calls in their order; neighbours that only read run side by side."""
        await self._ask_ahead(calls, desk)
        for group in self._groups(calls, desk):
            await desk.hold()
            if len(group) == 1:
                await self._one(group[0], desk)
                continue
            await _together([self._one(call, desk) for call in group])

    async def _ask_ahead(self, calls: Sequence[ToolCall], desk: Desk) -> None:
        """What a round needs a person for is asked at once, and not one call after the other."""
        if len(calls) < 2 or desk.summary.dry_run:
            return
        ready: list[Ready] = []
        for call in calls:
            known = desk.summary.open_calls.get(call.id)
            if not (known and known.started):
                # What is wrong with a call is told when it is its turn.
                with suppress(ToolError):
                    ready.append(self.ready(call, desk))
        await self.permits.ahead(ready, desk)

    def _groups(self, calls: Sequence[ToolCall], desk: Desk) -> list[list[ToolCall]]:
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

    def _only_reads(self, call: ToolCall, desk: Desk) -> bool:
        """Whether a call only looks and waits for nobody; one that cannot even be judged does nothing at all."""
        tool = self.tools.get(call.name)
        if tool is None or tool.effect != "read" or tool.seconds is None:
            return False
        try:
            return tool.judge is None or self.ready(call, desk).judged.effect == "read"
        except ToolError:
            return True

    async def abandon(self, calls: Sequence[ToolCall], desk: Desk) -> None:
        """Writes down what can be known of calls that nobody goes on with. Nothing is run; what runs is ended."""
        for call in calls:
            tool = self.tools.get(call.name)
            if desk.summary.open_calls[call.id].started and tool and tool.recover:
                with suppress(LeftOpen):
                    await self._one(call, desk, self._learn)
        self.tidy(desk.summary)

    def tidy(self, summary: Summary) -> None:
        """Removes the journals of commands whose results are in the log."""
        leftovers.tidy(self.runner, summary.id, summary.open_calls)

    async def _learn(self, call: ToolCall, desk: Desk, _: "_Watch") -> Result:
        await leftovers.end(self.runner, _key(desk, call))
        return await self._recover(self.ready(call, desk)) or leftovers.NO_EFFECT

    async def _one(self, call: ToolCall, desk: Desk, learn: Callable[..., Awaitable[Result]] | None = None) -> None:
        watch = _Watch(self._clock, call.id)
        try:
            result = await (learn or self._outcome)(call, desk, watch)
        except ToolError as error:
            result = Result(text=_told(error.trouble), ok=False, trouble=error.trouble)
        except SylphError:
            raise
        except Exception as error:
            logger.exception("tool %s failed", call.name)
            trouble = Trouble("tool_crashed", f"{call.name} failed: {type(error).__name__}: {error}")
            result = Result(text=_told(trouble), ok=False, trouble=trouble)
        result = _noted(desk.summary.open_calls.get(call.id), result)
        # Before it is cut: half a secret is not known for one.
        result = replace(result, text=await self._hidden(result.text))
        shaped = shape(result.text, call.id, lines=self.bounds.lines, size=self.bounds.bytes)
        images = {output_digest(picture.data): picture for picture in result.images}
        finished = facts.ToolFinished(
            call=call.id,
            ok=result.ok,
            output=shaped.text,
            exit=result.exit,
            trouble=result.trouble,
            ms=watch.ms(),
            whole=shaped.digest,
            whole_bytes=len(shaped.whole),
            dry=result.dry,
            images=tuple(
                Image(digest, picture.media, len(picture.data), picture.name) for digest, picture in images.items()
            ),
        )
        whole = [(shaped.digest, shaped.whole)] if shaped.digest else []
        pictures = [(digest, picture.data) for digest, picture in images.items()]
        changed = await self.watch.after(desk.summary.id, call.id, desk.summary.workspace, ok=result.ok)
        await desk.emit(*changed, finished, blobs=[*whole, *pictures])
        self._trip("effect told")
        self.watch.done(desk.summary.id, call.id)
        self.runner.forget(_key(desk, call))
        self._trip("effect forgotten")

    async def _hidden(self, text: str) -> str:
        """Without its secrets; a very long text does not hold up everything else meanwhile."""
        return self.veil.text(text) if len(text) < LONG else await asyncio.to_thread(self.veil.text, text)

    async def _outcome(self, call: ToolCall, desk: Desk, watch: "_Watch") -> Result:
        ready = self.ready(call, desk)
        known = desk.summary.open_calls.get(call.id)
        # What had started when the process died is run again only if it surely had no effect.
        doubtful = known and known.started and not _repeatable(ready.tool)
        if doubtful and (result := await self._recover(ready)):
            return result
        ready = await self._permit(ready, desk)
        watch.start()
        return await self._perform(ready, desk)

    async def _recover(self, ready: Ready) -> Result | None:
        if ready.tool.recover:
            return await ready.tool.recover(ready.args, ready.context)
        raise Unknown(
            "Sylph was stopped while this call ran. Whether it took effect is not known.",
            next=["Find out what happened (look at the files, the process, the service) before doing it again."],
        )

    def ready(self, call: ToolCall, desk: Desk) -> Ready:
        tool = self.tools.get(call.name)
        if tool is None:
            raise ToolError(
                f"There is no tool {call.name!r}.", kind="unknown_tool", next=[f"Known tools: {self.names(call.id)}."]
            )
        arguments = self.veil.arguments(call.arguments)
        args = parse(tool, arguments)
        context = self._context(call, tool, desk)
        judged = tool.judge(args, context) if tool.judge else Judged(tool.effect, tool.risk)
        judged = self._veiled(self.permits.judged(judged), secret=arguments is not call.arguments)
        ready = Ready(call, tool, args, judged, context)
        return self._gripped(ready, desk)

    def _veiled(self, judged: Judged, *, secret: bool) -> Judged:
        """A judgement in the words of the log. To send a secret away is dangerous, wherever to."""
        commands = tuple(map(self.veil.text, judged.commands))
        if secret and judged.effect == "external":
            judged = replace(judged, risk="dangerous", why=f"sends a secret away; {judged.why}".removesuffix("; "))
        return replace(judged, commands=commands) if commands != judged.commands else judged

    def _gripped(self, ready: Ready, desk: Desk) -> Ready:
        """The call with hands that can do no more than what it was judged to do."""
        summary, context = desk.summary, ready.context
        grip = Grip(
            workspace=context.workspace,
            private=context.private,
            effect=ready.judged.effect,
            outside=ready.judged.outside,
            off=not summary.sandbox,
            strict=summary.mode == "sandbox",
        )
        runs = CallRuns(self.runner, _key(desk, ready.call), grip)
        jobs = SessionJobs(self.runner, summary.id, grip)
        return replace(ready, context=replace(context, runs=runs, jobs=jobs))

    def _context(self, call: ToolCall, tool: Tool, desk: Desk) -> Context:
        known = desk.summary.open_calls.get(call.id)

        def output(text: str) -> None:
            desk.show(signals.ToolOutput(call=call.id, text=text))

        async def ask(questions: Sequence[Question]) -> Sequence[str]:
            # All at once, and none is left open: whoever answers sees everything, also when one stays unanswered.
            asking = (_question(question, call, desk) for question in questions)
            answers = await asyncio.gather(*asking, return_exceptions=True)
            for answer in answers:
                if isinstance(answer, BaseException):
                    raise answer
            return [answer for answer in answers if isinstance(answer, str)]

        return Context(
            session=desk.summary.id,
            call=call.id,
            workspace=Path(desk.summary.workspace),
            seconds=self.bounds.seconds if tool.seconds is None else min(tool.seconds, self.bounds.seconds),
            output=Hidden(self.veil, output),
            emit=desk.emit,
            ask=ask,
            whole=desk.whole,
            runs=CallRuns(self.runner, _key(desk, call)),
            jobs=SessionJobs(self.runner, desk.summary.id),
            private=self.private(desk.summary.id),
            post=lambda notice: desk.post(notice, call.id),
            memory=self.bounds.memory,
            foreseen={self.veil.restored(key): value for key, value in known.foreseen.items()} if known else {},
        )

    async def _permit(self, ready: Ready, desk: Desk) -> Ready:
        """Writes the decision down, and that the call starts: on the disk before an effect can be."""
        ready, decided = await self.permits.permit(ready, desk)
        effect = ready.judged.effect != "read" and not desk.summary.dry_run
        foreseen = dict[str, str]()
        if effect and ready.tool.foresee:
            foreseen.update(await ready.tool.foresee(ready.args, ready.context))
        started = facts.ToolStarted(
            call=ready.call.id, effect=ready.judged.effect, recourse=ready.tool.recourse, foreseen=foreseen
        )
        if effect:
            await self.watch.before(desk.summary.id, ready.call.id, desk.summary.workspace, ready.judged)
        await desk.emit(decided, started, durable=effect)
        return ready

    async def _perform(self, ready: Ready, desk: Desk) -> Result:
        if desk.summary.dry_run and ready.judged.effect != "read":
            return Result(text=f"[dry run: nothing was changed]\n{await ready.preview()}", dry=True)
        limit = None if ready.tool.seconds is None else ready.context.seconds + GRACE
        timer = asyncio.timeout(limit)
        try:
            async with timer:
                self._trip("effect before")
                run = ready.tool.run(ready.args, ready.context)
                result = await (whole(run, timer) if ready.tool.recourse == "by_content" else run)
                self._trip("effect after")
                return result
        except TimeoutError as error:
            if not timer.expired():
                raise
            raise ToolError(f"{ready.tool.name} took longer than {limit:.0f} s.", kind="timeout") from error
        finally:
            if isinstance(ready.context.output, Hidden):
                ready.context.output.rest()


def _repeatable(tool: Tool) -> bool:
    """Whether a call does no harm when it is made again: it has no effect, or whoever has it knows it by its key."""
    return tool.recourse == "pure" or (tool.recourse == "by_key" and tool.recover is None)


async def _together(runs: Sequence[Coroutine[Any, Any, None]]) -> None:
    try:
        async with asyncio.TaskGroup() as tasks:
            for run in runs:
                tasks.create_task(run)
    except BaseExceptionGroup as group:
        # The first failure tells the story; the others are its echo.
        raise group.exceptions[0] from group


def _key(desk: Desk, call: ToolCall) -> str:
    """What the journal of a call's command is called."""
    return f"{desk.summary.id}.{call.id}"


def _noted(call: OpenCall | None, result: Result) -> Result:
    """The model hears what was run instead of what it called."""
    if not (call and call.edited):
        return result
    note = f"[the user changed the arguments to {call.arguments}]\n"
    return result if result.text.startswith(note) else replace(result, text=note + result.text)


async def _question(question: Question, call: ToolCall, desk: Desk) -> str:
    answered = await desk.ask(
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
        raise Refused(
            f"Nobody answered: {answered.reason or 'no person is there'}.",
            kind="nobody_there",
            next=["Decide yourself with the safest assumption, and say which one you made."],
        )
    return answered.answer


def _told(trouble: Trouble) -> str:
    """A trouble in the words the model reads."""
    said = "Outcome unknown" if trouble.kind == Unknown.kind else f"Error ({trouble.kind})"
    lines = [f"{said}: {trouble.message}"]
    lines += [f"{key}: {value}" for key, value in trouble.details.items()]
    lines += [f"Next: {action}" for action in trouble.next]
    return "\n".join(lines)
