import datetime
import gzip
import tracemalloc
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledeline.core.errors import CorpusError
from ledeline.corpus import InvalidRow, Pair, Row, SkippedDocument, gigaword, lines
from ledeline.corpus.gigaword import read_gigaword, read_split_list, split_files

MAY = datetime.date(1994, 5, 12)
HEADLINE = "(TOP (NP (NNP Rain) (VBZ delays) (CD 2) (NNS flights)))"
FIRST = "(TOP (S (NP (NN Rain)) (VP (VBD came) (PP (IN in) (CD 1994))) (. .)))"
SECOND = "(TOP (S (NP (PRP It)) (VP (VBD stayed)) (. .)))"


def tree(*words: str) -> str:
    """Write a sentence as a flat parse, a period with its own tag."""
    leaves = (f"(. {word})" if word in ".?!" else f"(NN {word})" for word in words)
    return f"(TOP (S {' '.join(leaves)}))"


def by_lines(
    headline: str | None, *paragraphs: list[str], name: str = "AFP_ENG_19940512.0001"
) -> str:
    lines = [f'<DOC id="{name}" type="story" >']
    if headline is not None:
        lines += ["<HEADLINE>", headline, "</HEADLINE>"]
    lines += ["<DATELINE>", "(TOP (NP (NNP PARIS)))", "</DATELINE>", "<TEXT>"]
    for sentences in paragraphs:
        lines += ["<P>", *sentences, "</P>"]
    return "\n".join([*lines, "</TEXT>", "</DOC>", ""])


def by_tokens(
    headline: str | None, *sentences: list[str], name: str = "AFP_ENG_19940512.0001"
) -> str:
    lines = [f'<DOC id="{name}" type="story">']
    if headline is not None:
        lines += ["<HEADLINE>", headline, "</HEADLINE>"]
    lines += ["<DATELINE>PARIS, May 12 (AFP)</DATELINE>", "<sentences>"]
    for words in sentences:
        lines += ['<sentence id="1">', "<tokens>"]
        for word in words:
            lines += ['<token id="1">', f"<word>{word}</word>", f"<lemma>{word}</lemma>"]
            lines += ["<POS>NN</POS>", "</token>"]
        lines += ["</tokens>", "<parse>(ROOT (NP (NN unused)))</parse>", "</sentence>"]
    mention = "<mention><sentence>1</sentence><start>1</start></mention>"
    lines += ["</sentences>", "<coreferences>", f"<coreference>{mention}</coreference>"]
    return "\n".join([*lines, "</coreferences>", "</DOC>", ""])


def rows_of(folder: Path, *documents: str | bytes, name: str = "afp_eng_199405.xml") -> list[Row]:
    path = folder / name
    data = b"".join(text if isinstance(text, bytes) else text.encode() for text in documents)
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return list(read_gigaword(path))


def texts(rows: list[Row]) -> list[tuple[str, str]]:
    return [(row.lede, row.headline) for row in rows if isinstance(row, Pair)]


def lede_of(folder: Path, *sentences: str) -> str:
    ((lede, _),) = texts(rows_of(folder, by_lines(HEADLINE, list(sentences))))
    return lede


def headline_of(folder: Path, headline: str) -> str:
    ((_, found),) = texts(rows_of(folder, by_lines(headline, [FIRST])))
    return found


# -- the rules, in the layout of lines ---------------------------------------------------------


@pytest.mark.parametrize("name", ["a.xml", "a.xml.gz", "a.gz"])
def test_pair_with_its_place_and_date(tmp_path, name):
    other = by_lines(HEADLINE, [SECOND], name="NYT_ENG_20001231.0002")
    rows = rows_of(tmp_path, '<FILE id="x">\n', by_lines(HEADLINE, [FIRST]), other, name=name)
    file = str(tmp_path / name)
    assert rows == [
        Pair("Rain came in #### .", "Rain delays # flights", MAY, file, 2),
        Pair("It stayed .", "Rain delays # flights", datetime.date(2000, 12, 31), file, 15),
    ]


def test_first_paragraph_after_the_headline_is_taken(tmp_path):
    before = by_lines(HEADLINE, [FIRST], [SECOND]).replace(
        "<HEADLINE>", "<P>\n" + tree("early", ".") + "\n</P>\n<HEADLINE>"
    )
    assert texts(rows_of(tmp_path, before)) == [("Rain came in #### .", "Rain delays # flights")]


def test_documents_are_not_crossed(tmp_path):
    rows = rows_of(
        tmp_path,
        by_lines("(TOP (NN lonely))"),
        by_lines(None, [SECOND]),
        by_lines(HEADLINE, [FIRST]),
        by_lines(None),
        by_lines("(TOP (NN empty))", []),
        by_lines("", [FIRST]),
    )
    file = str(tmp_path / "afp_eng_199405.xml")
    tag = '<DOC id="AFP_ENG_19940512.0001" type="story" >'
    assert rows[0] == SkippedDocument(file, 1, "no paragraph", tag)
    assert rows[1] == SkippedDocument(file, 11, "no headline", tag)
    assert rows[2] == Pair("Rain came in #### .", "Rain delays # flights", MAY, file, 21)
    assert [row.rule for row in rows[3:]] == ["no headline", "no paragraph", "no headline"]


def test_headline_tag_without_a_headline(tmp_path):
    document = by_lines("x", [FIRST]).replace("\nx\n", "\n")
    assert [row.rule for row in rows_of(tmp_path, document)] == ["no headline"]


def test_outer_bracket_without_a_label_is_removed(tmp_path):
    # without rule 2 the last bracket would make a word of what is none
    assert headline_of(tmp_path, "( (NP (NN a) (NN b) c)") == "a b"
    assert headline_of(tmp_path, "(NP (NN a) (NN b) c)") == "a b c"
    assert headline_of(tmp_path, "  ( (S (NN a) (NN b)))  ") == "a b"
    assert lede_of(tmp_path, "( (S (NN a) (. .)))") == "a ."
    # its last character goes, whatever it is: here the bracket that ends the period
    assert lede_of(tmp_path, "( (S (NN a) (. .)", tree("b", ".")) == "a b ."


def test_digits(tmp_path):
    assert headline_of(tmp_path, "(TOP (CD 1,234.5) (NN B2B) (CD 1990s))") == "#,###.# B#B ####s"
    assert headline_of(tmp_path, "(TOP (CD ٣) (CD ²))") == "٣ ²"  # only those of ASCII


def test_sentences_up_to_the_first_with_a_period(tmp_path):
    assert (
        lede_of(tmp_path, tree("a"), tree("b", "?"), tree("c", "."), tree("d", ".")) == "a b ? c ."
    )


def test_paragraph_without_a_period_is_taken_whole(tmp_path):
    assert lede_of(tmp_path, tree("a"), "", tree("b", "!"), tree("c")) == "a b ! c"


def test_words_stop_after_the_first_period(tmp_path):
    assert lede_of(tmp_path, tree("a", ".", "b", ".")) == "a ."
    assert lede_of(tmp_path, "(TOP (NN a) (: .) (NN b))", tree("c", ".")) == "a ."
    assert headline_of(tmp_path, tree("a", ".", "b")) == "a ."
    assert headline_of(tmp_path, tree("U.S.", "b...", "c")) == "U.S. b... c"


def test_words_are_the_pieces_that_end_in_a_bracket(tmp_path):
    assert headline_of(tmp_path, "(TOP (NP (-LRB- -LRB-)\t(NN a)  (POS 's)))") == "-LRB- a 's"
    assert headline_of(tmp_path, "(TOP (NN a\u00a0b) (NN c\u2028d))") == "a\u00a0b c\u2028d"
    assert headline_of(tmp_path, "no parse") == ""


def test_a_document_with_an_empty_word_is_passed_over(tmp_path):
    for headline, lede in (
        ("(TOP (NN a) ) (NN b)", FIRST),
        ("(TOP (NN a))", "(TOP (NN a) ) (. .))"),
    ):
        (row,) = rows_of(tmp_path, by_lines(headline, [lede]))
        assert isinstance(row, SkippedDocument)
        assert row.rule == "empty word"


def test_entities_and_what_is_no_xml_stay_as_written(tmp_path):
    parse = "(TOP (NNP AT&amp;T) (CC &) (SYM <) (NN <b>) (NN \x01))"
    assert headline_of(tmp_path, parse) == "AT&amp;T & < <b> \x01"


@pytest.mark.parametrize(
    ("name", "date"),
    [
        ("AFP_ENG_19940512.0001", MAY),
        ("APW19940512.0001", MAY),
        ("AFP_ENG_19941312.0001", None),
        ("AFP_ENG_0001", None),
        ("199405120", None),
        ("", None),
    ],
)
def test_date_is_in_the_identifier(tmp_path, name, date):
    documents = by_lines(HEADLINE, [FIRST], name=name), by_tokens("A", ["a", "."], name=name)
    assert [row.date for row in rows_of(tmp_path, *documents)] == [date, date]


def test_document_without_an_identifier(tmp_path):
    document = by_lines(HEADLINE, [FIRST])
    bare = "<DOC>\n" + document.partition("\n")[2]
    (row,) = rows_of(tmp_path, bare)
    assert row.date is None
    spread = document.replace("<DOC id", "<DOC\n  id")
    (row,) = rows_of(tmp_path, spread)
    assert row.date == MAY


# -- the layout of tokens ----------------------------------------------------------------------


def test_tokens(tmp_path):
    document = by_tokens(HEADLINE, ["Rain", "came", "in", "1994", "."], ["It", "stayed", "."])
    file = str(tmp_path / "afp_eng_199405.xml")
    assert rows_of(tmp_path, "<FILE>\n", document) == [
        Pair("Rain came in #### .", "Rain delays # flights", MAY, file, 2)
    ]


@pytest.mark.parametrize(
    ("headline", "found"),
    [
        ("( (NP (NN a) (CD 7)))", "a #"),
        ("(TOP (NP (NN a) (. .) (NN b)))", "a ."),
        ("(TOP\n (NP (NN a)\n (NN b)))", "a b"),
        ("Rain &amp; wind in\n 1994 (update)", "Rain &amp; wind in #### (update)"),
        ("(AFP) A b (c)", "(AFP) A b (c)"),
        ("a . b", "a ."),
        ("<![CDATA[a & b]]> <!-- not this -->", "a &amp; b"),
    ],
)
def test_headline_of_tokens_is_a_parse_or_plain(tmp_path, headline, found):
    assert texts(rows_of(tmp_path, by_tokens(headline, ["a", "."]))) == [("a .", found)]


def test_tokens_without_headline_or_sentences(tmp_path):
    rows = rows_of(
        tmp_path,
        by_tokens(None, ["a", "."]),
        by_tokens("\n  ", ["a", "."]),
        by_tokens("A"),
        '<DOC id="x"><HEADLINE>A</HEADLINE></DOC>\n',
        by_tokens("B", ["b", "."]),
    )
    rules = [row.rule for row in rows if isinstance(row, SkippedDocument)]
    assert rules == ["no headline", "no headline", "no paragraph", "no paragraph"]
    assert texts(rows) == [("b .", "B")]


def test_tokens_without_a_period_are_taken_whole(tmp_path):
    assert texts(rows_of(tmp_path, by_tokens("A", ["a"], [], ["b", "?"]))) == [("a b ?", "A")]


def test_documents_need_no_lines_of_their_own(tmp_path):
    one = by_tokens("A", ["a", "."]).replace("\n", "")
    two = by_tokens("B", ["b", "."]).replace("\n", " ")
    rows = rows_of(tmp_path, f'<?xml version="1.0"?><FILE id="x">{one}{two}\n{one}</FILE>')
    assert texts(rows) == [("a .", "A"), ("b .", "B"), ("a .", "A")]
    assert [row.line for row in rows] == [1, 1, 2]


WORD = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=6)
PLAIN_WORD = WORD.filter(lambda word: not set("()") & set(word)) | st.sampled_from(
    [".", "?", "&", "<", ">", "&amp;", "AT&T", "1990", "-LRB-", "\\/", "``", "''", "<P>", "]]>"]
)
SENTENCE = st.lists(PLAIN_WORD, min_size=1, max_size=5)


@given(headline=SENTENCE, sentences=st.lists(SENTENCE, min_size=1, max_size=3))
@settings(deadline=None, max_examples=100)
def test_both_layouts_give_the_same_pair(tmp_path_factory, headline, sentences):
    def escaped(words: list[str]) -> list[str]:
        return [escape(word) for word in words]

    parse = tree(*escaped(headline))
    lines = by_lines(parse, [tree(*escaped(words)) for words in sentences])
    tokens = by_tokens(parse, *map(escaped, sentences))
    folder = tmp_path_factory.mktemp("both")
    (first,), (second,) = rows_of(folder, lines), rows_of(folder, tokens)
    assert isinstance(first, Pair)
    assert first == second
    mixed = rows_of(folder, lines, tokens, lines)
    assert texts(mixed) == texts([first, second, first])


def test_odd_tokens_give_what_their_parse_gives(tmp_path):
    words = ["1 1/2", ":)", "a)b", "."]
    parse = "(TOP (CD 1 1/2) (: :)) (NN a)b) (. .))"
    lines, tokens = by_lines("(TOP (NN a))", [parse]), by_tokens("(TOP (NN a))", words)
    first, second = texts(rows_of(tmp_path, lines, tokens))
    assert first == second == ("#/# : a)b .", "a")


# -- what is broken ----------------------------------------------------------------------------

GOOD = by_tokens("A", ["a", "."])


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("</tokens>", "", 21, "the document is not valid XML: mismatched tag"),
        ("<word>a<", "<word>&nbsp;<", 10, "the document is not valid XML: undefined entity"),
        ("<word>a<", "<word>\x01<", 10, "the document is not valid XML: not well-formed"),
        ("<word>a<", "<word>a & b<", 10, "the document is not valid XML: not well-formed"),
    ],
)
def test_unsound_document_does_not_stop_the_reader(tmp_path, old, new, line, reason):
    assert old in GOOD
    rows = rows_of(tmp_path, GOOD.replace(old, new, 1), GOOD, by_lines(HEADLINE, [FIRST]))
    assert [type(row) for row in rows] == [InvalidRow, Pair, Pair]
    assert rows[0].line == line
    assert rows[0].reason.startswith(reason)
    assert str(rows[0]).startswith(f"{tmp_path / 'afp_eng_199405.xml'}: line {line}: ")


def test_bad_bytes_name_their_line(tmp_path):
    tokens = GOOD.encode().replace(b"<lemma>a", b"<lemma>\xff")
    parse = by_lines(HEADLINE, [SECOND, FIRST]).encode()
    late = parse.replace(b"Rain)) (VP", b"\xff)) (VP")  # after the period: never looked at
    first = parse.replace(b"(PRP It", b"(PRP \xff")
    headline = parse.replace(b"(NNP Rain", b"(NNP \xe9")
    rows = rows_of(tmp_path, tokens, late, first, headline, GOOD)
    assert [type(row) for row in rows] == [InvalidRow, Pair, InvalidRow, InvalidRow, Pair]
    assert rows[0].line == 11
    assert rows[0].reason == "not UTF-8: byte 0xff at byte 8"
    size = tokens.count(b"\n")
    assert rows[2].line == size + parse.count(b"\n") + 10
    assert rows[2].text.startswith("(TOP (S (NP (PRP \\xff")
    assert rows[3].line == size + 2 * parse.count(b"\n") + 3


@pytest.mark.parametrize("document", [GOOD, by_lines(HEADLINE, [FIRST], [SECOND])])
def test_last_document_is_cut_off(tmp_path, document):
    start = GOOD.count("\n") + 1
    for kept in (1, 3, 5, document.count("\n") - 1):
        cut = "".join(document.splitlines(keepends=True)[:kept])
        rows = rows_of(tmp_path, GOOD, cut)
        assert [type(row) for row in rows] == [Pair, InvalidRow]
        assert rows[1].line == start
        assert rows[1].reason == "the document is incomplete: no </DOC> before the file ends"
        assert rows[1].text.startswith("<DOC id=")


def test_document_is_cut_off_by_the_next(tmp_path):
    rows = rows_of(tmp_path, by_lines(HEADLINE, [FIRST]).replace("</DOC>\n", ""), GOOD)
    assert rows[0].line == 1
    reason = "the document is incomplete: no </DOC> before the next one starts on line 13"
    assert rows[0].reason == reason
    assert texts(rows) == [("a .", "A")]


def test_paragraph_is_cut_off(tmp_path):
    rows = rows_of(tmp_path, by_lines(HEADLINE, [FIRST]).replace("</P>\n", ""), GOOD)
    assert rows[0].line == 9
    assert rows[0].reason == "the paragraph is incomplete: no </P> before the document ends"
    assert texts(rows) == [("a .", "A")]


def test_packed_file_that_breaks_off(tmp_path):
    path = tmp_path / "x.xml.gz"
    path.write_bytes(gzip.compress(GOOD.encode() * 2 + b"<DOC>\n<P>\n") + b"rubbish")
    rows = list(read_gigaword(path))
    assert [type(row) for row in rows] == [Pair, Pair, InvalidRow, InvalidRow]
    before = 2 * GOOD.count("\n")
    assert rows[2].line == before + 3
    assert rows[2].reason.startswith("the file cannot be read beyond this point")
    assert rows[3].line == before + 1


def test_files_without_documents(tmp_path):
    file = str(tmp_path / "afp_eng_199405.xml")
    assert rows_of(tmp_path, "") == [InvalidRow(file, 0, "the file is empty", "")]
    reason = "there is no <DOC> in the file"
    assert rows_of(tmp_path, "<FILE>\n<DOCID>\n</FILE>\n") == [InvalidRow(file, 0, reason, "")]
    with pytest.raises(CorpusError, match="none: no such file"):
        list(read_gigaword(tmp_path / "none"))


def test_close_without_open(tmp_path):
    rows = rows_of(tmp_path, "</DOC>\n", GOOD)
    assert rows[0].reason == "</DOC> without <DOC>"
    assert texts(rows) == [("a .", "A")]


LAUGHS = '<!DOCTYPE x [\n<!ENTITY a "ha">\n<!ENTITY b "&a;&a;&a;&a;">\n]>\n'


def test_entities_are_never_expanded(tmp_path):
    inside = GOOD.replace("<sentences>", LAUGHS + "<sentences>")
    laughing = GOOD.replace("<word>a<", "<word>&b;<")
    rows = rows_of(tmp_path, inside, laughing, GOOD)
    assert [type(row) for row in rows] == [InvalidRow, InvalidRow, Pair]
    assert rows[0].line == 6
    assert rows[0].reason == "a document must not declare a type or entities"
    rows = rows_of(tmp_path, LAUGHS, laughing, GOOD)
    assert [(type(row), row.line) for row in rows[:3]] == [
        (InvalidRow, 2),
        (InvalidRow, 3),
        (InvalidRow, 14),
    ]
    assert rows[0].reason == "entities must not be declared"
    assert texts(rows) == [("a .", "A")]


def test_deep_nesting_does_no_harm(tmp_path):
    deep = GOOD.replace("<sentences>", "<x>" * 50_000 + "</x>" * 50_000 + "<sentences>")
    assert texts(rows_of(tmp_path, deep)) == [("a .", "A")]


def test_endless_document_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(gigaword, "DOCUMENT_LIMIT_BYTES", 1000)
    long = by_lines(HEADLINE, [SECOND] * 50)
    rows = rows_of(tmp_path, long, by_lines(HEADLINE, [FIRST]))
    assert rows[0].reason == "the document is longer than 1,000 bytes"
    assert rows[0].line == 1
    assert texts(rows) == [("Rain came in #### .", "Rain delays # flights")]


def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "BLOCK_BYTES", 1 << 16)
    peaks = []
    for size in (300, 3_000):
        path = tmp_path / f"{size}.xml"
        path.write_text((by_lines(HEADLINE, [FIRST], [SECOND]) + GOOD) * size)
        tracemalloc.start()
        assert sum(isinstance(row, Pair) for row in read_gigaword(path)) == 2 * size
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0] < 1 << 20  # ten times the documents


# -- splits ------------------------------------------------------------------------------------


def test_split_list(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("\ufeffafp/afp_eng_199405\r\n\n  NYT/nyt_eng_200012.txt \t\nxin/xin_eng_199501")
    names = ["afp/afp_eng_199405", "NYT/nyt_eng_200012", "xin/xin_eng_199501"]
    assert read_split_list(path) == names


@pytest.mark.parametrize(
    "line",
    [
        "afp_eng_199405",
        "afp/afp_eng_1994",
        "afp/afp_eng_199413",
        "../afp_eng_199405",
        "afp/nyt_eng_199405",
    ]
    + [
        "afp/afp_eng_199405.xml.gz",
        "afp/afp_eng_199405 nyt/nyt_eng_199405",
        "\xff",
        "a/../afp_eng_199405",
    ],
)
def test_malformed_split_list(tmp_path, line):
    path = tmp_path / "train.txt"
    path.write_bytes(b"afp/afp_eng_199405\n\n" + line.encode("latin-1") + b"\n")
    with pytest.raises(
        CorpusError, match=r"train\.txt: line 3: .* is not the name of a Gigaword file"
    ):
        read_split_list(path)


def test_split_list_that_cannot_be_read(tmp_path):
    (tmp_path / "empty").write_text("")
    with pytest.raises(CorpusError, match="empty: the file is empty"):
        read_split_list(tmp_path / "empty")
    with pytest.raises(CorpusError, match="none: no such file"):
        read_split_list(tmp_path / "none")


def touch(path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.touch()
    return path


def test_split_files_are_found_in_order(tmp_path):
    files = [
        touch(tmp_path / "nyt" / "nyt_eng_200012.xml"),
        touch(tmp_path / "afp" / "afp_eng_199405.xml.gz"),
        touch(tmp_path / "xin" / "xin_eng_199501.gz"),
    ]
    touch(tmp_path / "afp" / "afp_eng_199405.xml")
    touch(tmp_path / "AFP" / "afp_eng_199405.xml.gz")
    names = ["nyt/nyt_eng_200012", "afp/afp_eng_199405", "xin/xin_eng_199501"]
    assert split_files(tmp_path, names) == files


def test_split_files_in_another_case(tmp_path):
    found = touch(tmp_path / "AFP" / "AFP_ENG_199405.XML.GZ")
    assert split_files(tmp_path, ["afp/afp_eng_199405"]) == [found]


def test_missing_split_files_are_counted(tmp_path):
    touch(tmp_path / "afp" / "afp_eng_199405.xml")
    (tmp_path / "afp" / "afp_eng_199406.xml").mkdir()
    names = [f"afp/afp_eng_19940{month}" for month in (5, 6, 7, 8)]
    with pytest.raises(CorpusError) as error:
        split_files(tmp_path, names)
    place = tmp_path / "afp" / "afp_eng_199406.xml.gz"
    assert str(error.value) == f"{place}: no such file; 3 of the 4 files of the split are missing"
    with pytest.raises(CorpusError, match="4 of the 4 files"):
        split_files(tmp_path / "nowhere", names)
