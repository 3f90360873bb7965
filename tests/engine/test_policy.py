"""The decision about a call: total, explained, and never looser in a stricter mode."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sylph.core.permission.rules import STRICTNESS, RuleSubject, WorkspaceRules, find_rule, unexpired_rules
from sylph.core.permission.types import Decision, Effect, Mode, PermissionRule, Risk
from sylph.core.tool import CallAssessment
from sylph.engine.calls import grant_scope
from sylph.engine.calls.policy import MODE_DECISIONS, MODES_BY_FREEDOM, PolicyGuard, PolicyInput, evaluate_policy

RULES = """
                read  write external self
trust           allow allow allow    allow
auto_noselfmod  allow allow allow    ask
ask             allow ask   ask      ask
sandbox         allow ask   ask      deny
plan            allow deny  deny     deny
"""
WS = "/ws"

names = st.sampled_from(["shell", "write", "fetch"])
commands = st.sampled_from(["git push origin main", "git status", "rm -rf build", "pytest -q", "curl x"])
paths = st.sampled_from(["/ws/a.txt", "/ws/src/b.py", "/ws/.env", "/etc/hosts"])
hosts = st.sampled_from(["example.org", "api.example.org", "10.0.0.1"])
decisions: st.SearchStrategy[Decision] = st.sampled_from(["allow", "ask", "deny"])
rule = st.builds(
    PermissionRule,
    decision=decisions,
    tool=st.sampled_from(["*", "shell", "write", "f*"]),
    command=st.sampled_from(["", "", "git *", "git push *", "rm *", "pytest -q"]),
    path=st.sampled_from(["", "", "src/**", ".env", "/etc/**", "*.txt"]),
    host=st.sampled_from(["", "", "*.example.org", "example.org"]),
)
rules = st.lists(rule, max_size=4).map(tuple)
effects: st.SearchStrategy[Effect] = st.sampled_from(["read", "write", "external", "self"])
risks: st.SearchStrategy[Risk] = st.sampled_from(["safe", "caution", "dangerous"])
judged = st.builds(
    CallAssessment,
    effects,
    risks,
    reads=st.lists(paths, max_size=2).map(tuple),
    writes=st.lists(paths, max_size=2).map(tuple),
    hosts=st.lists(hosts, max_size=2).map(tuple),
    commands=st.lists(commands, max_size=2).map(tuple),
    outside=st.booleans(),
)
guard = st.builds(
    PolicyGuard, kind=st.sampled_from(["secret", "git"]), decision=decisions, path=paths, why=st.just("protected")
)
modes: st.SearchStrategy[Mode] = st.sampled_from(MODES_BY_FREEDOM)
case = st.builds(
    PolicyInput,
    tool=names,
    mode=modes,
    judged=judged,
    workspace=st.just(WS),
    digest=st.just("d"),
    rules=st.builds(WorkspaceRules, rules, rules, st.sampled_from(["", "cannot be read"])),
    grants=rules,
    guards=st.lists(guard, max_size=2).map(tuple),
    confined=st.booleans(),
    command=st.booleans(),
)


def test_the_modes_are_this_table() -> None:
    head, *rows = [line.split() for line in RULES.strip("\n").splitlines()]
    assert {row[0]: dict(zip(head, row[1:], strict=True)) for row in rows} == MODE_DECISIONS


@given(case)
def test_every_case_is_decided_with_a_reason_and_the_way_to_it(case: PolicyInput) -> None:
    ruling = evaluate_policy(case)
    assert ruling.decision in STRICTNESS
    assert ruling.reason
    assert ruling.path[0].by == "mode"
    assert any(step.reason == ruling.reason for step in ruling.path)


@given(case)
def test_a_stricter_mode_never_allows_more(case: PolicyInput) -> None:
    found = [STRICTNESS[evaluate_policy(replace(case, mode=mode)).decision] for mode in MODES_BY_FREEDOM]
    assert found == sorted(found)


@given(case)
def test_without_rules_guards_and_wishes_the_table_holds_exactly(case: PolicyInput) -> None:
    plain = CallAssessment(case.judged.effect, case.judged.risk)
    bare = PolicyInput(tool=case.tool, mode=case.mode, judged=plain)
    assert evaluate_policy(bare).decision == MODE_DECISIONS[case.mode][plain.effect]


@given(case, rules)
def test_a_project_can_only_make_it_stricter(case: PolicyInput, more: tuple[PermissionRule, ...]) -> None:
    without = replace(case, rules=case.rules._replace(project=()))
    with_them = replace(case, rules=case.rules._replace(project=more))
    assert STRICTNESS[evaluate_policy(with_them).decision] >= STRICTNESS[evaluate_policy(without).decision]


@given(case)
def test_what_a_mode_denies_nothing_allows(case: PolicyInput) -> None:
    if MODE_DECISIONS[case.mode][case.judged.effect] == "deny":
        assert evaluate_policy(case).decision == "deny"


@given(case)
def test_the_way_out_of_the_sandbox_is_never_open_by_itself(case: PolicyInput) -> None:
    assert evaluate_policy(replace(case, judged=replace(case.judged, outside=True))).decision != "allow"


@given(case)
def test_a_worse_effect_with_the_same_reach_is_never_allowed_sooner(case: PolicyInput) -> None:
    order: tuple[Effect, ...] = ("read", "write", "self")
    found = [
        STRICTNESS[evaluate_policy(replace(case, judged=replace(case.judged, effect=effect))).decision]
        for effect in order
    ]
    assert found == sorted(found)


def shell(*commands: str, risk: Risk = "caution", mode: Mode = "ask", **more: object) -> PolicyInput:
    judged = CallAssessment("write", risk, commands=commands)
    return replace(PolicyInput(tool="shell", mode=mode, judged=judged, workspace=WS, command=True), **more)  # pyright: ignore[reportArgumentType]


def user(*rules: PermissionRule) -> WorkspaceRules:
    return WorkspaceRules(rules)


def allow(**named: str) -> PermissionRule:
    return PermissionRule(decision="allow", **named)  # pyright: ignore[reportArgumentType]


def deny(**named: str) -> PermissionRule:
    return PermissionRule(decision="deny", **named)  # pyright: ignore[reportArgumentType]


def test_an_allowed_command_excuses_no_other() -> None:
    rules = user(allow(command="git status"))
    assert evaluate_policy(shell("git status", rules=rules)).decision == "allow"
    assert evaluate_policy(shell("git status", "rm x", rules=rules)).decision == "ask"


def test_several_rules_together_allow_a_line_of_several_commands() -> None:
    rules = user(allow(command="git *"), allow(command="echo *"))
    assert evaluate_policy(shell("echo hi", "git status", rules=rules)).decision == "allow"


def test_one_denied_command_denies_the_line_also_in_trust() -> None:
    rules = user(deny(command="git push *"))
    ruling = evaluate_policy(shell("git add x", "git push origin", mode="trust", rules=rules))
    assert (ruling.decision, ruling.by) == ("deny", "rule")
    assert "deny *: command git push *" in ruling.reason


def test_the_first_rule_that_fits_decides() -> None:
    rules = user(allow(tool="shell", command="git push *"), deny(command="git *"))
    assert evaluate_policy(shell("git push x", rules=rules)).decision == "allow"
    assert evaluate_policy(shell("git pull", rules=rules)).decision == "deny"


def test_a_pattern_fits_the_command_alone_too() -> None:
    assert find_rule([allow(command="git push *")], RuleSubject("shell", WS, ("git push",)))
    assert not find_rule([allow(command="git push *")], RuleSubject("shell", WS, ("git pushy",)))


def test_a_path_alone_allows_no_command() -> None:
    judged = CallAssessment("write", "caution", writes=("/ws/src/a",), commands=("cp x src/a",))
    case = PolicyInput(
        tool="shell", mode="ask", judged=judged, workspace=WS, rules=user(allow(path="src/**")), command=True
    )
    assert evaluate_policy(case).decision == "ask"
    assert (
        evaluate_policy(replace(case, tool="write", judged=replace(judged, commands=()), command=False)).decision
        == "allow"
    )


def test_a_wide_rule_does_not_cover_what_is_dangerous() -> None:
    assert evaluate_policy(shell("rm -rf build", risk="dangerous", rules=user(allow(command="rm *")))).decision == "ask"
    assert (
        evaluate_policy(shell("rm -rf build", risk="dangerous", rules=user(allow(command="rm -rf build")))).decision
        == "allow"
    )


def test_which_commands_run_must_be_known_where_rules_are_about_commands() -> None:
    assert evaluate_policy(shell(mode="trust", rules=user(deny(command="rm *")))).decision == "ask"
    assert evaluate_policy(shell(mode="trust")).decision == "allow"


def test_a_secret_is_opened_only_by_a_rule_that_names_its_place() -> None:
    secret = PolicyGuard("secret", "ask", "/ws/.env", "it holds secrets")
    case = PolicyInput(
        tool="read", mode="trust", judged=CallAssessment("read", "safe", reads=("/ws/.env",)), workspace=WS
    )
    guarded = replace(case, guards=(secret,))
    assert evaluate_policy(guarded).decision == "ask"
    assert evaluate_policy(replace(guarded, rules=user(allow(tool="read")))).decision == "ask"
    assert evaluate_policy(replace(guarded, rules=user(allow(tool="read", path=".env")))).decision == "allow"


def test_a_wide_grant_answers_only_the_question_of_the_mode() -> None:
    case = PolicyInput(
        tool="write", mode="ask", judged=CallAssessment("write", "caution", writes=("/ws/.git/x",)), workspace=WS
    )
    granted = replace(case, grants=(allow(tool="write"),))
    assert evaluate_policy(granted).decision == "allow"
    assert (
        evaluate_policy(replace(granted, guards=(PolicyGuard("secret", "ask", "/ws/.env", "secret"),))).decision
        == "ask"
    )


def test_without_a_sandbox_each_command_is_asked_about() -> None:
    ruling = evaluate_policy(shell("make", mode="auto_noselfmod", confined=False))
    assert (ruling.decision, ruling.by) == ("ask", "sandbox")


def test_rules_end_when_their_time_is_over() -> None:
    rules = (allow(until="2030-01-31"), allow(until="2030-01-31T12:00:00+01:00"))
    assert unexpired_rules(rules, 1_896_048_000_000) == rules
    assert unexpired_rules(rules, 1_927_584_000_000) == ()


@pytest.mark.parametrize(
    ("command", "covers", "covers_not"),
    [
        ("git commit -m x", "git commit --amend", "git push"),
        ("pytest -q tests", "pytest", "pytester"),
        ("npm run build", "npm run test", "npm publish"),
    ],
)
def test_a_yes_for_the_session_covers_the_same_kind_of_command(command: str, covers: str, covers_not: str) -> None:
    grants = grant_scope.session_grants(
        "shell", CallAssessment("write", "caution", commands=(command,)), WS, "d", by_content=False
    )
    assert evaluate_policy(shell(covers, grants=grants)).decision == "allow"
    assert evaluate_policy(shell(covers_not, grants=grants)).decision == "ask"
    assert evaluate_policy(shell(covers, covers_not, grants=grants)).decision == "ask"


@pytest.mark.parametrize(
    "command", ["bash -c x", "python3 -c x", "sudo ls", "env A=1 ls", "find . -exec rm {} +", "rm -rf build", "mv a b"]
)
def test_what_can_do_anything_is_granted_only_word_for_word(command: str) -> None:
    judged = CallAssessment("write", "caution", commands=(command,))
    (grant,) = grant_scope.session_grants("shell", judged, WS, "d", by_content=False)
    assert "*" not in grant.command
    assert evaluate_policy(shell(f"{command} more", grants=(grant,))).decision == "ask"


@given(judged)
def test_nothing_dangerous_is_ever_remembered(judged: CallAssessment) -> None:
    worst = replace(judged, risk="dangerous")
    assert grant_scope.permanent_rules("shell", worst, "d") == ()
    grants = grant_scope.session_grants("shell", worst, WS, "d", by_content=True)
    assert all(grant.digest == "d" for grant in grants)


@given(judged, names)
def test_what_is_granted_covers_the_call_it_was_granted_for(judged: CallAssessment, name: str) -> None:
    grants = grant_scope.session_grants(name, replace(judged, outside=False), WS, "d", by_content=name == "write")
    case = PolicyInput(
        tool=name, mode="ask", judged=replace(judged, outside=False), workspace=WS, digest="d", grants=grants
    )
    assert evaluate_policy(case).decision == "allow"


@pytest.mark.parametrize(
    "command",
    ["git push", "git push origin main", "/usr/bin/git push", "git -C . push", "git --no-pager push x",
     "git -c a.b=c push", "git --git-dir=.git push", "./git --work-tree . push"],
)  # fmt: skip
def test_a_forbidden_command_is_known_by_every_name_it_goes_by(command: str) -> None:
    rules = WorkspaceRules(user=(PermissionRule(decision="deny", command="git push *"),))
    assert evaluate_policy(shell(command, mode="trust", rules=rules)).decision == "deny"
    assert evaluate_policy(shell("git pull", mode="trust", rules=rules)).decision == "allow"


def test_a_permission_is_for_the_command_as_it_stands() -> None:
    rules = WorkspaceRules(user=(PermissionRule(decision="allow", command="git push *"),))
    assert evaluate_policy(shell("git push x", rules=rules)).decision == "allow"
    assert evaluate_policy(shell("git -C /elsewhere push x", rules=rules)).decision == "ask"
    assert evaluate_policy(shell("./git push x", rules=rules)).decision == "ask"


def test_where_commands_are_forbidden_what_cannot_be_read_is_asked_about() -> None:
    case = shell("echo make x", "sh", mode="trust")
    hidden = replace(case, judged=replace(case.judged, unsure=True))
    assert evaluate_policy(hidden).decision == "allow"
    assert (
        evaluate_policy(
            replace(hidden, rules=WorkspaceRules(user=(PermissionRule(decision="deny", command="make *"),)))
        ).decision
        == "ask"
    )


def test_what_is_too_wide_for_a_dangerous_call_leaves_it_to_the_rules_after_it() -> None:
    rules = WorkspaceRules(
        user=(PermissionRule(decision="allow", command="git *"), PermissionRule(decision="deny", command="git push *"))
    )
    case = shell("git push --force", mode="trust", rules=rules)
    dangerous = replace(case, judged=replace(case.judged, risk="dangerous"))
    ruling = evaluate_policy(dangerous)
    assert ruling.decision == "deny"
    assert any("too wide" in step.reason for step in ruling.path)
