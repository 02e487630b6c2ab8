"""Capitals."""

import pytest

from ledeline.inference.typography.finish import finish


@pytest.mark.parametrize(
    ("text", "lede", "printed"),
    [
        ("police find boy", "Police found him.", "Police find boy"),
        ("'police find boy'", "Police found him.", "'Police find boy'"),
        ("oslo storm kills two", "A storm hit Oslo.", "Oslo storm kills two"),
        ("Owner of Youtube sues", "It sued YouTube.", "Owner of YouTube sues"),
        ("Fans of CZech Telefonica", "The Czech firm left.", "Fans of Czech Telefonica"),
        (
            "Trump Wants Fema Reform After Floods",
            "He said FEMA failed.",
            "Trump Wants FEMA Reform After Floods",
        ),
        (
            "Trap has mickey as killer",
            "In Mickey's trap, a Mickey kills.",
            "Trap has Mickey as killer",
        ),
    ],
)
def test_it_follows_the_lede(text, lede, printed):
    assert finish(text, lede) == printed
    assert finish(printed, lede) == printed


@pytest.mark.parametrize(
    ("text", "lede"),
    [
        ("iPhone sales rise", "The iPhone sells."),
        ("itel opens store", "The firm itel opened one."),
        ("EBay shares rise", "Shares of eBay rose."),
        ("San Francisco mayor quits", "The city's Mayor Breed left."),
        ("Health bosses quit", "HEALTH bosses left."),
        ("Kareem opens shop", "It was KAREEM who came."),
        ("Uefa bans club", "It was banned by UEFA."),  # not in a title
        ("MPs and CEOs meet", "The mps met ceos."),
        ("ANDREW McCARTHY: We lost", "Andrew McCarthy spoke."),
        ("Some of us visit US", "The US won."),
        ("rain falls in oslo", "rain fell in oslo."),
        ("Will DeSantis run", "It is deSantis."),
    ],
)
def test_what_is_not_certain_stays(text, lede):
    assert finish(text, lede) == text
