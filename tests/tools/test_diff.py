from sylph.tools.files.edit.diff_preview import unified_diff


def test_the_same_text_is_no_change_of_line_ends() -> None:
    assert unified_diff("a.txt", "one\n", "one\n") == "a.txt: nothing changes"
    assert unified_diff("a.txt", "one\r\n", "one\n") == "a.txt: nothing changes but line ends"
