"""Signs of currencies and shares that a headline lost."""

import pytest

from ledeline.inference.typography.finish import finish


@pytest.mark.parametrize(
    ("text", "lede", "printed"),
    [
        ("Bank pays 5 million", "The bank paid $5 million.", "Bank pays $5 million"),
        ("Bank pays 5m fine", "The bank paid a £5 million fine.", "Bank pays £5m fine"),
        ("Bank to pay 1,250 for error", "It paid €1,250 to him.", "Bank to pay €1,250 for error"),
        ("Firm raises 4bn in sale", "It raised US$4bn.", "Firm raises US$4bn in sale"),
        ("Sales rise 12", "Sales rose 12% in May.", "Sales rise 12%"),
        ("Sales up 12 in May", "Sales rose 12 per cent.", "Sales up 12% in May"),
        ("Inflation hits 8.5 in March", "Inflation was 8.5%.", "Inflation hits 8.5% in March"),
        ("Trump sets 50 tariff", "He set a 50% tariff.", "Trump sets 50% tariff"),
    ],
)
def test_a_lost_sign_returns(text, lede, printed):
    assert finish(text, lede) == printed
    assert finish(printed, lede) == printed


@pytest.mark.parametrize(
    ("text", "lede"),
    [
        ("5 million people flee", "The $5 million bridge fell as they fled."),
        ("Bank pays 5 million", "It paid $5 million to 5 million people."),
        ("Bank pays 5 million", "It paid $5 million (£5 million)."),
        ("Bank pays 5 million euros", "It paid €5 million."),
        ("Bank pays EUR5 million", "It paid €5 million."),
        ("Bank pays 6 million", "It paid $5 million."),
        ("Bank pays 5 billion", "It paid $5 million."),
        ("S&P 500 ends lower", "It cost $500."),
        ("Shares fall in 2008", "It cost $2008."),
        ("Man, 50, dies", "He paid $50."),
        ("Storm kills 12 in Ohio", "Of houses 12% were lost."),
        ("Bulls win 12 to 9", "Bulls had 12% more."),
        ("Sales rise 12", "Sales rose 12% in 12 months."),
        ("Man dies on May 12", "Sales rose 12%."),
        ("Bank's A320-12 jet", "Sales rose 12%, to $320."),
        ("Sales rise 12%, profit $5m", "Sales rose 12% to $5m."),
    ],
)
def test_what_is_not_certain_stays(text, lede):
    assert finish(text, lede) == text
