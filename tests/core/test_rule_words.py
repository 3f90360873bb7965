"""Rules as a person reads them."""

import pytest

from sylph.core.permission.rule_text import describe_rule, describe_rules
from sylph.core.permission.types import PermissionRule
from sylph.core.tool import CallAssessment
from sylph.engine.calls import grant_scope


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (PermissionRule(decision="allow"), "allow every tool"),
        (PermissionRule(decision="deny", tool="shell"), "deny shell"),
        (PermissionRule(decision="deny", command="git push *"), 'deny every tool: commands that begin with "git push"'),
        (PermissionRule(decision="allow", tool="shell", command="make test"), 'allow shell: the command "make test"'),
        (PermissionRule(decision="ask", tool="shell", command="* --force"), 'ask shell: commands like "* --force"'),
        (PermissionRule(decision="allow", tool="shell", command=">b.txt *"), 'allow shell: writing to "b.txt"'),
        (PermissionRule(decision="deny", tool="shell", command=">*.key"), 'deny shell: commands like ">*.key"'),
        (PermissionRule(decision="deny", tool="write", path="secrets/**"), 'deny write: everything in "secrets/"'),
        (PermissionRule(decision="deny", tool="write", path="*.key"), 'deny write: paths like "*.key"'),
        (PermissionRule(decision="allow", tool="edit", path="/a/b.py"), 'allow edit: the path "/a/b.py"'),
        (PermissionRule(decision="allow", tool="web", host="*.example.org"), 'allow web: hosts like "*.example.org"'),
        (PermissionRule(decision="allow", tool="web", host="a.example"), 'allow web: the host "a.example"'),
        (PermissionRule(decision="allow", tool="shell", digest="d"), "allow shell: exactly this call"),
        (
            PermissionRule(decision="ask", command="cp *", path="etc/**", until="2030-01-31"),
            'ask every tool: commands that begin with "cp" with everything in "etc/", until 2030-01-31',
        ),
    ],
)
def test_a_rule_is_told_in_words(rule: PermissionRule, said: str) -> None:
    assert describe_rule(rule) == said


def test_what_a_yes_would_cover_is_one_sentence() -> None:
    judged = CallAssessment("write", "caution", commands=(">b.txt", "echo changed"), writes=("/w/b.txt",))
    offered = grant_scope.session_grants("shell", judged, "/w", "d", by_content=False)
    assert describe_rules(offered) == 'allow shell: writing to "b.txt" and commands that begin with "echo"'


def test_rules_of_different_tools_are_told_apart() -> None:
    rules = (
        PermissionRule(decision="allow", tool="read"),
        PermissionRule(decision="allow", tool="write", path="out/**"),
    )
    assert describe_rules(rules) == 'allow read; allow write: everything in "out/"'
