"""Pairs from Annotated Gigaword (LDC2012T21), by the rules of Rush et al. (2015).

A document has one of two layouts, which is detected for each document:

- lines: after a line ``<HEADLINE>`` one bracketed parse, after a line ``<P>`` one bracketed parse
  per sentence up to ``</P>``. Such a file need not be valid XML, so its lines are scanned;
- tokens: ``DOC > HEADLINE, DATELINE, sentences/sentence/tokens/token/word`` as the annotation API
  of the corpus describes it; each document is parsed as XML of its own.

Rules 1 to 5 are those of the paper's scripts. Like them, we read bytes: a digit is one of 0 to 9,
white space is that of ASCII, and entities stay as they are (``&amp;``). Documents with an empty
word are skipped here and not by the filter. Two deviations:

- a headline without a paragraph is not paired with the next document's paragraph;
- a paragraph without a period does not end in the word ``</P>``.
"""

import datetime
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from ledeline.core.errors import CorpusError
from ledeline.corpus import InvalidRow, Pair, Row, SkippedDocument
from ledeline.corpus.lines import FileReadError, decode, encoding_error, excerpt, read_lines

DOCUMENT_LIMIT_BYTES: Final = 64 << 20
ARCHIVE_SUFFIXES: Final = (".xml.gz", ".xml", ".gz")

_DOCUMENT_TAGS: Final = re.compile(rb"(?=<DOC(?:[\s>]|$))|(?<=</DOC>)")
_IDENTIFIER: Final = re.compile(rb"<DOC\b[^>]*?\bid\s*=\s*[\"']([^\"'>]*)", re.IGNORECASE)
_DAY: Final = re.compile(rb"(?<![0-9])([0-9]{4})([0-9]{2})([0-9]{2})(?![0-9])")
_TOKEN_LAYOUT: Final = re.compile(rb"<sentences\b|<tokens\b|<HEADLINE>[^\S\n]*[^\s]")
_DECLARATION: Final = re.compile(rb"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)
_PARSE: Final = re.compile(rb"\([^\s()]*\s*\(")  # no plain headline begins with two brackets
_DIGITS: Final = bytes.maketrans(b"0123456789", b"##########")
_SPLIT_NAME: Final = re.compile(r"([A-Za-z]{3})/([A-Za-z]{3})_eng_[0-9]{4}(?:0[1-9]|1[0-2])")

ByteWords = list[bytes]


class _Document(NamedTuple):
    """The lines of a document, each with its number, from ``<DOC`` to ``</DOC>``."""

    lines: list[tuple[int, bytes]]

    @property
    def line(self) -> int:
        return self.lines[0][0]

    @property
    def text(self) -> bytes:
        return b"\n".join(line for _, line in self.lines)


class _InvalidDocument(Exception):
    """A document cannot be used; ``place`` is the index of the line with the error."""

    def __init__(self, place: int, reason: str) -> None:
        super().__init__(place, reason)
        self.place = place
        self.reason = reason


def read_gigaword(path: Path) -> Iterator[Row]:
    """Yield one row per document of a file, plain or compressed."""
    num_documents = 0
    for document in _documents(path):
        num_documents += 1
        yield document if isinstance(document, InvalidRow) else _row(str(path), document)
    if not num_documents:
        yield InvalidRow(str(path), 0, "there is no <DOC> in the file", "")


def _documents(path: Path) -> Iterator[_Document | InvalidRow]:
    """Split a file into documents, with one of them in memory at a time."""
    file = str(path)
    lines: list[tuple[int, bytes]] = []  # of the open document
    size = 0
    try:
        for number, piece in _pieces(path):
            if piece.startswith(b"<DOC") and _DOCUMENT_TAGS.match(piece):
                if lines:
                    yield _incomplete(file, lines, f"before the next one starts on line {number}")
                lines, size = [], 0
            elif not lines:
                yield from _between(file, number, piece)
                continue
            size += len(piece)
            if size <= DOCUMENT_LIMIT_BYTES or not lines:
                lines.append((number, piece))
            if piece.endswith(b"</DOC>"):
                yield _whole(file, lines, size)
                lines = []
    except FileReadError as broken:
        yield broken.invalid_row(path)
    if lines:
        yield _incomplete(file, lines, "before the file ends")


def _pieces(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield numbered lines, split where a document starts or ends within a line."""
    for number, line in enumerate(read_lines(path), start=1):
        if b"DOC" not in line:
            yield number, line
            continue
        for piece in _DOCUMENT_TAGS.split(line):
            if piece:
                yield number, piece


def _between(file: str, number: int, piece: bytes) -> Iterator[InvalidRow]:
    """Check a line outside documents; most are ignored."""
    if piece.endswith(b"</DOC>"):
        yield InvalidRow(file, number, "</DOC> without <DOC>", excerpt(piece))
    elif b"<!ENTITY" in piece:
        yield InvalidRow(file, number, "entities must not be declared", excerpt(piece))


def _incomplete(file: str, lines: list[tuple[int, bytes]], where: str) -> InvalidRow:
    number, line = lines[0]
    return InvalidRow(file, number, f"the document is incomplete: no </DOC> {where}", excerpt(line))


def _whole(file: str, lines: list[tuple[int, bytes]], size: int) -> _Document | InvalidRow:
    if size <= DOCUMENT_LIMIT_BYTES:
        return _Document(lines)
    number, line = lines[0]
    reason = f"the document is longer than {DOCUMENT_LIMIT_BYTES:,} bytes"
    return InvalidRow(file, number, reason, excerpt(line))


def _row(file: str, document: _Document) -> Row:
    text = document.text
    try:
        _check_declarations(document, text)
        by_tokens = _TOKEN_LAYOUT.search(text)
        headline, lede = _by_tokens(document, text) if by_tokens else _by_lines(document)
    except _InvalidDocument as error:
        number, line = document.lines[error.place]
        return InvalidRow(file, number, error.reason, excerpt(line))
    if headline is None or lede is None:
        rule = "no headline" if headline is None else "no paragraph"
        return SkippedDocument(file, document.line, rule, excerpt(document.lines[0][1]))
    if b"" in headline or b"" in lede:
        return SkippedDocument(file, document.line, "empty word", excerpt(document.lines[0][1]))
    return Pair(_joined(lede), _joined(headline), _date(text), file, document.line)


def _check_declarations(document: _Document, text: bytes) -> None:
    if _DECLARATION.search(text):
        for place, (_, line) in enumerate(document.lines):
            if _DECLARATION.search(line):
                raise _InvalidDocument(place, "a document must not declare a type or entities")


def _joined(words: ByteWords) -> str:
    return decode(b" ".join(words))


def _date(text: bytes) -> datetime.date | None:
    """Return the day in the identifier of a document, AFP_ENG_19940512.0001, if it has one."""
    identifier = _IDENTIFIER.match(text)
    day = _DAY.search(identifier[1]) if identifier else None
    try:
        return datetime.date(*map(int, day.groups())) if day else None
    except ValueError:
        return None


def _by_lines(document: _Document) -> tuple[ByteWords | None, ByteWords | None]:
    """Return the words of the headline and of the first paragraph after it (rule 1)."""
    lines = [line.strip() for _, line in document.lines]
    if b"<HEADLINE>" not in lines:
        return None, None
    place = lines.index(b"<HEADLINE>") + 1
    headline = None
    if lines[place] and not lines[place].startswith(b"</"):
        headline = _until_period(_parse_words(_repaired(_utf8(place, lines[place]))))
    if b"<P>" not in lines[place:]:
        return headline, None
    start = lines.index(b"<P>", place)
    if b"</P>" not in lines[start:]:
        raise _InvalidDocument(
            start, "the paragraph is incomplete: no </P> before the document ends"
        )
    end = lines.index(b"</P>", start)
    sentences = [place for place in range(start + 1, end) if lines[place]]
    if not sentences:
        return headline, None
    return headline, _lede(_repaired(_utf8(place, lines[place])) for place in sentences)


def _utf8(place: int, line: bytes) -> bytes:
    try:
        decode(line)
    except UnicodeDecodeError as error:
        raise _InvalidDocument(place, encoding_error(error)) from None
    return line


def _repaired(parse: bytes) -> bytes:
    """Return a parse without an outer bracket that has no label (rule 2), or digits (rule 3)."""
    parse = parse.strip()
    if parse.startswith(b"( "):
        parse = parse[2:-1]
    return parse.translate(_DIGITS)


def _lede(parses: Iterable[bytes]) -> ByteWords:
    """Return the words of the sentences up to the first with a period (rule 4)."""
    words: ByteWords = []
    for parse in parses:
        words += _parse_words(parse)
        if b"(. .)" in parse:
            break
    return _until_period(words)


def _parse_words(parse: bytes) -> ByteWords:
    """Return the leaves of a parse: what comes before closing brackets (rule 5)."""
    return [piece.strip(b")") for piece in parse.split() if piece.endswith(b")")]


def _until_period(words: ByteWords) -> ByteWords:
    """Return the words up to and with the first period (rule 5)."""
    return words[: words.index(b".") + 1] if b"." in words else words


def _by_tokens(document: _Document, text: bytes) -> tuple[ByteWords | None, ByteWords | None]:
    """Return the words of the headline and of the first sentences.

    This layout has no paragraphs: without a period, all sentences are taken.
    """
    root = _parsed(document, text)
    element = root.find(".//HEADLINE")
    headline = None if element is None else _headline_words("".join(element.itertext()))
    sentences = root.findall(".//sentences/sentence")
    if not sentences:
        return headline, None
    lede: ByteWords = []
    for sentence in sentences:
        words = [_token_word(word.text or "") for word in sentence.iterfind("tokens/token/word")]
        lede += words
        if b"." in words:
            break
    return headline, _until_period(lede)


def _parsed(document: _Document, text: bytes) -> ElementTree.Element:
    try:
        _utf8(0, text)
        return ElementTree.fromstring(text)
    except _InvalidDocument:
        for place, (_, line) in enumerate(document.lines):
            _utf8(place, line)  # names the line
        raise
    except ElementTree.ParseError as error:
        place = min(error.position[0], len(document.lines)) - 1
        reason = f"the document is not valid XML: {str(error).partition(':')[0]}"
        raise _InvalidDocument(place, reason) from None


def _token_word(text: str) -> bytes:
    """Return the word that the parse of the other layout would give for a token."""
    pieces = escape(text).encode("utf-8").translate(_DIGITS).split()
    return pieces[-1].strip(b")") if pieces else b""


def _headline_words(text: str) -> ByteWords | None:
    """Return the words of a headline, which is a parse or plain text; None if it is empty."""
    line = escape(text).encode("utf-8").strip()
    if not line:
        return None
    if _PARSE.match(line) and line.endswith(b")"):
        return _until_period(_parse_words(_repaired(line)))
    return _until_period(line.translate(_DIGITS).split())


def read_split_list(path: Path) -> list[str]:
    """Return the names of a split, one ``outlet/outlet_eng_YYYYMM`` per line.

    The lists that Rush et al. publish add ``.txt`` to each name; it is dropped.
    """
    names = []
    try:
        for number, line in enumerate(read_lines(path), start=1):
            name = line.decode("utf-8", errors="backslashreplace").strip()
            if name:
                names.append(_split_name(path, number, name))
    except FileReadError as broken:
        raise CorpusError(str(broken.invalid_row(path))) from broken
    return names


def _split_name(path: Path, number: int, text: str) -> str:
    name = text.removesuffix(".txt")
    match = _SPLIT_NAME.fullmatch(name)
    if match is None or match[1].lower() != match[2].lower():
        raise CorpusError(
            f"{path}: line {number}: {excerpt(text)!r} is not the name of a Gigaword file, such as "
            "afp/afp_eng_199405"
        )
    return name


def split_files(root: Path, names: list[str]) -> list[Path]:
    """Return the files of a split in a folder, in order.

    If a file is not found under its name, upper and lower case are ignored.
    """
    files = {name: _archive(root, name) for name in names}
    if None in files.values():
        folder = {str(path.relative_to(root)).lower(): path for path in sorted(root.glob("*/*"))}
        for name in (name for name, path in files.items() if path is None):
            candidates = (folder.get(name.lower() + suffix) for suffix in ARCHIVE_SUFFIXES)
            files[name] = next((path for path in candidates if path and path.is_file()), None)
    missing = [name for name, path in files.items() if path is None]
    if missing:
        raise CorpusError(
            f"{root / missing[0]}{ARCHIVE_SUFFIXES[0]}: no such file; {len(missing)} of the "
            f"{len(files)} files of the split are missing"
        )
    return [path for name in names if (path := files[name])]


def _archive(root: Path, name: str) -> Path | None:
    paths = (root / (name + suffix) for suffix in ARCHIVE_SUFFIXES)
    return next((path for path in paths if path.is_file()), None)
