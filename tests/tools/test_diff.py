from sylph.tools.diff import unified


def test_the_same_text_is_no_change_of_line_ends() -> None:
    assert unified("a.txt", "one\n", "one\n") == "a.txt: nothing changes"
    assert unified("a.txt", "one\r\n", "one\n") == "a.txt: nothing changes but line ends"
