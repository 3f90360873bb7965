"""Rules as a person reads them."""

import pytest

from sylph.core.permission import Rule
from sylph.core.rule_words import all_told, told
from sylph.core.tool import Judged
from sylph.engine import narrow


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (Rule(decision="allow"), "allow every tool"),
        (Rule(decision="deny", tool="shell"), "deny shell"),
        (Rule(decision="deny", command="git push *"), 'deny every tool: commands that begin with "git push"'),
        (Rule(decision="allow", tool="shell", command="make test"), 'allow shell: the command "make test"'),
        (Rule(decision="ask", tool="shell", command="* --force"), 'ask shell: commands like "* --force"'),
        (Rule(decision="allow", tool="shell", command=">b.txt *"), 'allow shell: writing to "b.txt"'),
        (Rule(decision="deny", tool="shell", command=">*.key"), 'deny shell: commands like ">*.key"'),
        (Rule(decision="deny", tool="write", path="secrets/**"), 'deny write: everything in "secrets/"'),
        (Rule(decision="deny", tool="write", path="*.key"), 'deny write: paths like "*.key"'),
        (Rule(decision="allow", tool="edit", path="/a/b.py"), 'allow edit: the path "/a/b.py"'),
        (Rule(decision="allow", tool="web", host="*.example.org"), 'allow web: hosts like "*.example.org"'),
        (Rule(decision="allow", tool="web", host="a.example"), 'allow web: the host "a.example"'),
        (Rule(decision="allow", tool="shell", digest="d"), "allow shell: exactly this call"),
        (
            Rule(decision="ask", command="cp *", path="etc/**", until="2030-01-31"),
            'ask every tool: commands that begin with "cp" with everything in "etc/", until 2030-01-31',
        ),
    ],
)
def test_a_rule_is_told_in_words(rule: Rule, said: str) -> None:
    assert told(rule) == said


def test_what_a_yes_would_cover_is_one_sentence() -> None:
    judged = Judged("write", "caution", commands=(">b.txt", "echo changed"), writes=("/w/b.txt",))
    offered = narrow.session("shell", judged, "/w", "d", by_content=False)
    assert all_told(offered) == 'allow shell: writing to "b.txt" and commands that begin with "echo"'


def test_rules_of_different_tools_are_told_apart() -> None:
    rules = (Rule(decision="allow", tool="read"), Rule(decision="allow", tool="write", path="out/**"))
    assert all_told(rules) == 'allow read; allow write: everything in "out/"'
