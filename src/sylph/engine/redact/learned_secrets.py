"""Values that were known by the words around them, and are known again where those are missing or stand otherwise."""

# So many values are looked for wherever they stand, and so many more where something is assigned.
MAX_LEARNED = 200
# Found by the words around them: without those they would not be known again.
BY_CONTEXT = frozenset({"password", "url-password", "login", "authorization"})


class LearnedSecrets:
    def __init__(self) -> None:
        self.anywhere: dict[str, str] = {}
        """So much their own that they are secret wherever they stand, and what they are."""
        self.assigned: dict[str, str] = {}
        """Short ones, and plain words: secret where a name that says so is given them."""

    def add(self, kind: str, value: str) -> bool:
        """Whether this was new."""
        from sylph.engine.redact.secret_likelihood import is_distinctive

        known = value in self.anywhere or value in self.assigned
        if kind not in BY_CONTEXT or known:
            return False
        wide = is_distinctive(value)
        table = self.anywhere if wide else self.assigned
        if len(table) >= MAX_LEARNED:
            return False
        # A log in another thread may be looking at the old one.
        if wide:
            self.anywhere = {**table, value: kind}
        else:
            self.assigned = {**table, value: kind}
        return True

    def drop(self, value: str) -> None:
        """Forgets every value that holds this one."""
        self.anywhere = {known: kind for known, kind in self.anywhere.items() if value not in known}
        self.assigned = {known: kind for known, kind in self.assigned.items() if value not in known}
