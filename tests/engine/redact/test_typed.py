"""What the chat keeps of what was typed."""

from pathlib import Path

from sylph.engine.redact.input_history import InputHistory
from sylph.engine.redact.policy import RedactionPolicy
from sylph.engine.redact.redactor import NoRedaction, Redactor

KEY = "sk-proj-abcDEF123456789012345678"


def typed(home: Path, *, enabled: bool = True) -> InputHistory:
    return InputHistory(home / "sylph" / "history", Redactor(RedactionPolicy(enabled=enabled), home / "vault"))


def test_what_is_kept_has_placeholders_and_comes_back_in_order(tmp_path: Path) -> None:
    typed(tmp_path).append(f"use {KEY}\nand go on")
    typed(tmp_path).append("/rename A_PASSWORD='correct horse battery staple'")
    file = tmp_path / "sylph" / "history"
    assert KEY not in file.read_text()
    assert "horse" not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    first, second = typed(tmp_path).load_entries()
    assert first.startswith("use ⟦secret:openai-key:")
    assert first.endswith("⟧\nand go on")
    assert second.startswith("/rename A_PASSWORD='⟦secret:password:")


def test_what_lies_there_from_before_is_taken_out(tmp_path: Path) -> None:
    file = tmp_path / "sylph" / "history"
    InputHistory(file, NoRedaction()).append(f"use {KEY}")
    InputHistory(file, NoRedaction()).append("hello")
    file.write_bytes(file.read_bytes() + b"\n# cut off\n+half \xff a line")
    file.chmod(0o644)
    assert KEY in file.read_text(errors="replace")
    first, *rest = typed(tmp_path).load_entries()
    assert first.startswith("use ⟦secret:")
    assert rest == ["hello", "half \ufffd a line"]
    assert KEY not in file.read_text(errors="replace")
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["history"]


def test_without_redaction_it_is_kept_as_it_is(tmp_path: Path) -> None:
    typed(tmp_path, enabled=False).append(f"use {KEY}")
    assert typed(tmp_path, enabled=False).load_entries() == [f"use {KEY}"]
