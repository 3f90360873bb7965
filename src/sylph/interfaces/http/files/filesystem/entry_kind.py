"""What something in a folder is."""

import os
from stat import S_ISDIR, S_ISLNK, S_ISREG
from typing import Literal

EntryKind = Literal["folder", "file", "link", "other"]


def entry_kind(found: os.stat_result) -> EntryKind:
    mode = found.st_mode
    return "folder" if S_ISDIR(mode) else "file" if S_ISREG(mode) else "link" if S_ISLNK(mode) else "other"
