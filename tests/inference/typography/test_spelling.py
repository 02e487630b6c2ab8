"""British and American spelling."""

import pytest

from ledeline.inference.typography.finish import finish
from ledeline.inference.typography.spelling_table import spelling_variants


@pytest.mark.parametrize(
    ("text", "lede", "printed"),
    [
        # The very word.
        ("Neighbor finds girl", "A neighbour found her.", "Neighbour finds girl"),
        ("Girl found by neighbour", "A neighbor found her.", "Girl found by neighbor"),
        (
            "Iran ends missile programme",
            "Iran's missile program ended.",
            "Iran ends missile program",
        ),
        ("Iran ends missile program", "Iran's programme ended.", "Iran ends missile programme"),
        ("Man hospitalised", "He was hospitalized.", "Man hospitalized"),
        ("Man wields ax", "He had an axe.", "Man wields axe"),
        ("Defense chief quits", "The Defence minister quit.", "Defence chief quits"),
        (
            "World Food Program ends aid",
            "The World Food Programme ended it.",
            "World Food Programme ends aid",
        ),
        (
            "The Flavour Of Summer Returns Again",
            "The flavor of summer.",
            "The Flavor Of Summer Returns Again",
        ),
        ("Rate up 5 percent", "It rose 5 per cent.", "Rate up 5 per cent"),
        # The other words of the lede.
        ("Mayor favors new center", "The colour of the theatre.", "Mayor favours new centre"),
        ("Mayor favours new centre", "The color of the theater.", "Mayor favors new center"),
        ("City cuts labor costs", "It was criticised.", "City cuts labour costs"),
        ("Group organises theatre", "The color of labor.", "Group organizes theater"),
        ("Group organises talks", "It was recognized.", "Group organizes talks"),
        ("Group organizes talks", "It was recognised.", "Group organises talks"),
        ("Man loses licence, cheque and tyre", "The color.", "Man loses license, check and tire"),
    ],
)
def test_it_follows_the_lede(text, lede, printed):
    assert finish(text, lede) == printed
    assert finish(printed, lede) == printed


@pytest.mark.parametrize(
    ("text", "lede"),
    [
        # Names.
        ("Labour Party splits over Pearl Harbor", "The color and the labor."),
        ("World Trade Center marks day", "The centre and the colour of honour."),
        ("Rockefeller Center tree is lit", "A colourful tree was lit in the centre."),
        ("Department of Defense cuts staff", "The defence of the colour."),
        ("UK defence chief quits", "He met the U.S. Department of Defense."),
        ("Rockefeller Center Lights Christmas Tree", "A tree in the centre of New York."),
        ("Harbor Freight closes stores", "In the harbour it closed."),
        ("Labour faces dispute", "The labor dispute went on."),
        ("Voters turn to Labour", "The labor dispute went on."),
        # Both spellings, or none.
        ("Mayor favors plan", "The colour of the center."),
        ("Mayor favours plan", "Rain fell in Oslo."),
        ("Mayor favors plan", "Rain fell in Oslo."),
        # The lede has the word as it is, too.
        ("Colour of money", "The colour of Color."),
        # Canadian and Oxford spelling.
        ("Group organizes labour talks", "The centre and its neighbours."),
        ("Group favours labour talks", "It was recognized and organized."),
        # Words that only look like one of the other spelling, or have other meanings.
        ("Hour of four glamour tours at sea", "The color of labor."),
        ("Size of prize and franchise advised", "It was organised in colour."),
        ("Computer program, parking meter and tire check", "The colour of the theatre."),
        ("Practice story of license on draft", "The colour of the theatre."),
        ("Controlled rebels excelled", "The color of labor."),
        ("He analyses analyses", "The color of labor."),
        ("Man buys gray axe", "The colour of the theater was honoured."),
        ("See colour.com and #colour and @colour", "The color."),
    ],
)
def test_what_is_not_certain_stays(text, lede):
    assert finish(text, lede) == text


def test_every_form_leads_back():
    variants = spelling_variants()
    assert len(variants) > 2000
    for word, variant in variants.items():
        back = variants[variant.other]
        assert back.other == word
        assert back.is_british is not variant.is_british
        assert word.isascii()
        assert word.isalpha()
        assert word.islower()


@pytest.mark.parametrize(
    "word",
    """hour four tour your pour sour flour contour velour detour glamour glamor size prize seize capsize
    advise advertise exercise surprise supervise revise devise compromise franchise enterprise promise
    otherwise premise paradise wise rise raise noise controlled patrolled rebelled excelled expelled
    propelled compelled fulfilled filled called analyses meter tire story humorist honorary laborious
    glamorous vigorous humorous coloration mother other order offer number member water center's""".split(),
)
def test_words_that_rules_would_take_for_others(word):
    variant = spelling_variants().get(word)
    assert variant is None or variant.reach == "american"
