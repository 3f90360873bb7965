"""The text of a body, whatever it was written in."""

import codecs
import re

from sylph.tools.web.readability.html_parser import word_set

# What browsers know; Python also has codecs under which any bytes could mean anything.
KNOWN = word_set(
    "utf-8 utf-16-le utf-16-be cp866 iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8 "
    "iso8859-10 iso8859-13 iso8859-14 iso8859-15 iso8859-16 koi8-r koi8-u mac-roman mac-cyrillic cp874 cp1250 "
    "cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 gbk gb18030 big5 big5hkscs euc_jp iso2022_jp "
    "shift_jis cp932 euc_kr cp949"
)
# Names that the web uses for something else than they say.
MEANT = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "utf-16": "utf-16-le", "iso8859-9": "cp1254"}
MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
DECLARED = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]{2,40})|<\?xml[^>]{0,100}?encoding=["']([\w.:-]{2,40})""", re.I
)


def decode_body(body: bytes, declared: str = "") -> str:
    """The text: by its mark, by what the server or the page says, else as UTF-8, else as Western European."""
    for mark, name in MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    told = _known_codec(declared) or _declared_codec(body)
    if told:
        return body.decode(told, "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        # A body that was cut may end in the middle of a character.
        if error.reason == "unexpected end of data":
            return body.decode("utf-8", "replace")
        return body.decode("cp1252", "replace")


def _declared_codec(body: bytes) -> str:
    found = DECLARED.search(body[:2048])
    name = _known_codec((found.group(1) or found.group(2)).decode("ascii", "replace")) if found else ""
    # Nobody could have read that in UTF-16.
    return "utf-8" if name.startswith("utf-16") else name


def _known_codec(label: str) -> str:
    try:
        name = codecs.lookup(label.strip(" \"'").lower()).name if label.strip(" \"'") else ""
    except (LookupError, ValueError):
        return ""
    name = MEANT.get(name, name)
    return name if name in KNOWN else ""
