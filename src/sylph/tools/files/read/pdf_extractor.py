"""A program that prints the text of some pages of a PDF as JSON: FILE FIRST COUNT BYTES."""

import json
import logging
import sys
from typing import Any


def extract_pages(path: str, first: int, count: int, size: int) -> dict[str, Any]:
    """At least one page, and so many more as fit into `size`."""
    import pypdf
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = pypdf.PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(""):
            return {"error": "it is locked with a password."}
        total, texts = len(reader.pages), list[str]()
        for number in range(first - 1, min(first - 1 + count, total)):
            text = reader.pages[number].extract_text()
            size -= len(text.encode("utf-8", "replace")) + 20
            if size < 0 and texts:
                break
            texts.append(text)
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        # Whatever is wrong with the file, this is how it shows.
        return {"error": f"the PDF is damaged ({type(error).__name__}: {error})."}
    return {"total": total, "pages": texts}


def main() -> None:
    path, first, count, size = sys.argv[1:]
    found = extract_pages(path, int(first), int(count), int(size))
    sys.stdout.buffer.write(json.dumps(found).encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
