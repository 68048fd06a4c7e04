"""Markdown blocks of an answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from groundwire.claims.markdown import LEAD_LIMIT, blocks, find_marks, labels_of, without
from tests.steps import is_linear


def read(text):
    return [(block.kind, text[block.start : block.end]) for block in blocks(text)]


BLOCKS = {
    "paragraph": ("One line\nand another.", [("paragraph", "One line\nand another.")]),
    "two_paragraphs": ("One.\n\nTwo.", [("paragraph", "One."), ("paragraph", "Two.")]),
    "crlf": ("One.\r\n\r\nTwo.\r\n", [("paragraph", "One."), ("paragraph", "Two.")]),
    "cr_alone": ("One.\r\rTwo.", [("paragraph", "One."), ("paragraph", "Two.")]),
    "heading": ("## Results ##\nText", [("heading", "Results"), ("paragraph", "Text")]),
    "hash_without_blank_is_text": ("#hash", [("paragraph", "#hash")]),
    "underlined_heading": ("Results\n=======\nText", [("heading", "Results"), ("paragraph", "Text")]),
    "rule": ("a\n\n***\n\nb", [("paragraph", "a"), ("rule", "***"), ("paragraph", "b")]),
    "list": ("- a\n- b", [("list_item", "a"), ("list_item", "b")]),
    "ordered_list": ("1. a\n2) b", [("list_item", "a"), ("list_item", "b")]),
    "task_list": ("- [x] done\n- [ ] open", [("list_item", "done"), ("list_item", "open")]),
    "bullets_that_are_no_markdown": ("• a\n• b", [("list_item", "a"), ("list_item", "b")]),
    "item_over_two_lines": ("- a\n  b\n- c", [("list_item", "a\n  b"), ("list_item", "c")]),
    "item_with_two_paragraphs": ("- a\n\n  b", [("list_item", "a"), ("list_item", "b")]),
    "list_right_after_text": ("Text:\n- a", [("paragraph", "Text:"), ("list_item", "a")]),
    "a_number_in_running_text_opens_no_list": ("It was\n1999. Then", [("paragraph", "It was\n1999. Then")]),
    "quote": ("> a\n> b\n\nc", [("quote", "a\n> b"), ("paragraph", "c")]),
    "nested_quote": ("> > a", [("quote", "a")]),
    "list_in_quote": ("> - a", [("quote", "a")]),
    "quote_in_list": ("- > a", [("quote", "a")]),
    "fence": ("```py\nx = 1\n```\ny", [("code", "```py\nx = 1\n```"), ("paragraph", "y")]),
    "fence_that_never_closes": ("~~~\nx\n\ny", [("code", "~~~\nx\n\ny")]),
    "fence_keeps_markdown": ("```\n# no\n- no\n```", [("code", "```\n# no\n- no\n```")]),
    "indented_code": ("a\n\n    x = 1\n    y", [("paragraph", "a"), ("code", "x = 1\n    y")]),
    "indented_line_after_text_is_text": ("a\n    b", [("paragraph", "a\n    b")]),
    "table": (
        "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |",
        [("table_header", "a | b"), ("table_row", "1 | 2"), ("table_row", "3 | 4")],
    ),
    "table_without_outer_pipes": ("a | b\n--|--\n1 | 2", [("table_header", "a | b"), ("table_row", "1 | 2")]),
    "pipes_without_delimiter_are_text": ("a | b\n1 | 2", [("paragraph", "a | b\n1 | 2")]),
    "delimiter_of_another_width_is_no_table": ("a | b\n|---|\n1 | 2", [("paragraph", "a | b\n|---|\n1 | 2")]),
    "html": ("<div>\nhi\n</div>\n\nb", [("html", "<div>\nhi\n</div>"), ("paragraph", "b")]),
    "script": ("<script>\na\n\nb\n</script>\nc", [("code", "<script>\na\n\nb\n</script>"), ("paragraph", "c")]),
    "comment": ("<!-- a\n\nb -->\nc", [("code", "<!-- a\n\nb -->"), ("paragraph", "c")]),
    "nothing": ("", []),
    "blank": (" \n\t\n", []),
}


@pytest.mark.parametrize(("text", "expected"), BLOCKS.values(), ids=BLOCKS)
def test_text_is_read_as_blocks(text, expected):
    assert read(text) == expected


LEADS = {
    "list_leans_on_its_lead_in": ("It has:\n\n- wheels", "wheels", "It has:"),
    "list_leans_on_its_heading": ("# Parts\n\n- wheels", "wheels", "Parts"),
    "text_that_leads_nowhere_is_no_lead_in": ("# Parts\n\nSome.\n\n- wheels", "wheels", "Parts"),
    "sublist_leans_on_its_parent": ("It has:\n- wheels\n  - red ones", "red ones", "It has: wheels"),
    "underindented_sublist_leans_on_its_parent": ("1. wheels\n  - red ones", "red ones", "wheels"),
    "row_leans_on_its_header": ("| a | b |\n|---|---|\n| 1 | 2 |", "1 | 2", "a | b"),
    "next_list_forgets_the_lead_in": ("It has:\n- a\n\nEnd.\n\n- wheels", "wheels", ""),
}


@pytest.mark.parametrize(("text", "own", "lead"), LEADS.values(), ids=LEADS)
def test_block_knows_what_it_leans_on(text, own, lead):
    assert [block.lead for block in blocks(text) if text[block.start : block.end] == own] == [lead]


ORACLE = (
    "Plain text.",
    "One.\n\nTwo\nlines.",
    "# H\n\nText\n\n## H2\nmore",
    "Title\n=====\n\nSub\n---\ntext",
    "- a\n- b\n- c",
    "1. a\n2. b\n\nEnd.",
    "- a\n  - b\n    - c\n- d",
    "- a\n\n  more\n\n- b",
    "* a\n* b\n\n***\n\n+ c",
    "> quote\n> more\n\ntext",
    "> quote\nlazy",
    "> - a\n> - b\n>\n> c",
    "- > q\n- r",
    "```\ncode\n```\n\ntext",
    "~~~py\n```\n~~~\ntext",
    "```\nnever closed\n\n- a",
    "text\n\n    code\n\n    code\n\ntext",
    "- a\n\n      code\n",
    "- a\n  ```\n  code\n  ```\n- b",
    "| a | b |\n|---|---|\n| 1 | 2 |\n\nend",
    "text\n\na | b\n--|--\n1 | 2",
    "text\n- a\n- b",
    "text\n# H\ntext\n> q",
    "<div>\nx\n</div>\n\ntext",
    "a\n\n---\n\nb\n\n___\n",
    "1) a\n2) b\n\n   c",
    "**bold**\n\n- **a:** b\n- *c*",
)
_KINDS = {"fence": "code", "code_block": "code", "hr": "rule", "html_block": "html"}


def oracle(text):
    """Return the kinds of leaf blocks as markdown-it sees them, in this package's terms."""
    kinds, around, table = [], [], None
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type in ("blockquote_open", "list_item_open", "heading_open"):
            around.append(token.type)
        elif token.type in ("blockquote_close", "list_item_close", "heading_close"):
            around.pop()
        elif token.type in ("thead_open", "tbody_open"):
            table = "table_header" if token.type == "thead_open" else "table_row"
        elif token.type == "tr_open":
            kinds.append(table)
        elif token.type == "table_close":
            table = None
        elif token.type in _KINDS:
            kinds.append(_KINDS[token.type])
        elif token.type == "inline" and table is None:
            if "heading_open" in around:
                kinds.append("heading")
            elif "blockquote_open" in around:
                kinds.append("quote")
            else:
                kinds.append("list_item" if around else "paragraph")
    return kinds


@pytest.mark.parametrize("text", ORACLE)
def test_kinds_agree_with_markdown_it(text):
    assert [block.kind for block in blocks(text)] == oracle(text)


@given(st.text(alphabet=st.sampled_from("ab1.)-*+#>|`~=_<!/ \t\n\r:é😀\ud800"), max_size=200))
def test_spans_are_ordered_disjoint_and_inside(text):
    place = 0
    for block in blocks(text):
        assert place <= block.start <= block.end <= len(text)
        assert len(block.lead) <= LEAD_LIMIT
        place = block.end


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["\n", "> ", ">", "|", "|\n", "`", "#", "* - ", " ", "\t", "<", "-\n", "=\n", "a\n", "[", "\\"]
)
def test_hostile_text_is_scanned_in_linear_time(unit):
    assert is_linear(lambda text: sum(1 for _ in blocks(text)), (unit * 16384)[:16384])
    large = (unit * 262_144)[:262_144]
    assert all(block.end <= len(large) for block in blocks(large))


CITED = {
    "number": ("It rose [1].", ("1",)),
    "several": ("It rose [1, 2; 4].", ("1", "2", "4")),
    "adjacent": ("It rose.[1][2]", ("1", "2")),
    "range": ("It rose [1-3].", ("1", "2", "3")),
    "range_with_a_dash": ("It rose [1–3].", ("1", "2", "3")),
    "identifier": ("It rose [doc-3].", ("doc-3",)),
    "identifiers": ("It rose [doc-1, doc-2].", ("doc-1", "doc-2")),
    "file": ("It rose [handbook.pdf].", ("handbook.pdf",)),
    "footnote": ("It rose.[^1]", ("1",)),
    "lens": ("It rose【1】.", ("1",)),
    "lens_with_source": ("It rose【4†source】.", ("4",)),
    "named": ("It rose (Source 2).", ("2",)),
    "named_in_brackets": ("It rose [Source: 3].", ("3",)),
    "named_in_text": ("Document 2 says so.", ("2",)),
    "named_plural": ("Passages 1, 2, and 3 say so.", ("1", "2", "3")),
    "twice_is_once": ("[1] says so [1].", ("1",)),
    "raised": ("It rose.¹ It fell²", ("1", "2")),
    "linked_number": ("It rose [[1]](https://a.b).", ("1",)),
    "number_as_link_text": ("It rose [1](https://a.b).", ("1",)),
    "link": ("See [the report](https://a.b).", ()),
    "unit": ("It is 5 km² or 10³ m².", ()),
    "year": ("In [2020] it rose.", ()),
    "editorial": ("It rose [sic] and [...] fell.", ()),
    "code": ("Call `a[1]`.", ()),
    "decimal_after_a_name": ("Source 1.5 is a version.", ()),
    "share_after_a_name": ("From this source 5% came.", ()),
    "year_after_a_name": ("The document 2023 is long.", ()),
    "article_of_a_law": ("Article 5 forbids it.", ()),
}


@pytest.mark.parametrize(("text", "labels"), CITED.values(), ids=CITED)
def test_labels_are_read(text, labels):
    assert labels_of(find_marks(text)) == labels


@given(st.text(alphabet=st.sampled_from("[]()【】†12,-–^ asourced¹²`.#"), max_size=80))
def test_marks_are_ordered_and_blanking_keeps_every_place(text):
    marks = list(find_marks(text))
    place = 0
    for mark in marks:
        assert place <= mark.start < mark.end <= len(text)
        assert all(mark.labels)
        place = mark.end
    assert len(without(marks, text)) == len(text)
