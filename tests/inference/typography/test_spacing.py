"""Spaces around marks, doubled marks, and marks at the ends."""

import pytest

from ledeline.inference.typography.finish import finish


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("Japan 's leader says they 'd pay", "Japan's leader says they'd pay"),
        ("Minister ca n't say what he 'll do", "Minister can't say what he'll do"),
        ("Shares fall , bonds rise ; gold up !", "Shares fall, bonds rise; gold up!"),
        ("Architecture on Mars : how to build", "Architecture on Mars: how to build"),
        ("Talks with the U.S. : what comes next", "Talks with the U.S.: what comes next"),
        ("Sales up 5 % at Tesco ( UK )", "Sales up 5% at Tesco (UK)"),
        ("Fine of $ 5 million for bank", "Fine of $5 million for bank"),
        ("Sources -- Colts hire coach", "Sources - Colts hire coach"),
        ("Mayor says it is over..", "Mayor says it is over..."),
        ("Mayor says it is over.....", "Mayor says it is over..."),
        ("Vote,, then talks:: report", "Vote, then talks: report"),
        ("Talks held in Geneva,", "Talks held in Geneva"),
        ("Welcome to a new era -", "Welcome to a new era"),
        ("Storm hits coast :", "Storm hits coast"),
        (", storm hits coast", "storm hits coast"),
        (
            "Minister resigns after threatening reporter.",
            "Minister resigns after threatening reporter",
        ),
        ("Music of the ' 90s returns", "Music of the '90s returns"),
    ],
)
def test_it_is_mended(text, printed):
    assert finish(text, "") == printed
    assert finish(printed, "") == printed


@pytest.mark.parametrize(
    ("text", "lede", "printed"),
    [
        ("U.S. - led talks begin", "The U.S.-led talks began.", "U.S.-led talks begin"),
        ("Cup won by Al- Ahly", "Egypt's Al-Ahly won the cup.", "Cup won by Al-Ahly"),
        ("Leader of U. S. army quits", "The U.S. army's head quit.", "Leader of U.S. army quits"),
        (
            "Store opens in Washington, D.C",
            "In Washington, D.C., it opened.",
            "Store opens in Washington, D.C.",
        ),
        ("Bear seen in Pa..", "A bear was seen in Pa. The bear left.", "Bear seen in Pa."),
        ("Man held on a post..", "He was held on a post.", "Man held on a post"),
        ("Shares sold for R$ 5", "They cost R$ 5 each.", "Shares sold for R$ 5"),
    ],
)
def test_what_only_the_lede_can_tell(text, lede, printed):
    assert finish(text, lede) == printed


@pytest.mark.parametrize(
    "text",
    [
        "He calls himself 'd---head' on television",
        "Royals have 's*** life', singer says",
        "Toy 'R' Us to close",
        "Hawks beat Bulls 3 - 2 - report",
        "What comes next for the U.S.",
        "Vote in Washington, D.C.",
        "He came. He saw. He won.",
        "Coach calls them 'a bunch of jacka--es'",
        "Shares of .NET firm rise",
        "340,000 people at 10:30 in 1.5-mile queue",
        "S&P 500 ends lower and/or flat",
        "What if...",
        "$5 stake",
        "'Stop!'",
    ],
)
def test_what_is_right_stays(text):
    assert finish(text, text) == text
    assert finish(text, "") == text
