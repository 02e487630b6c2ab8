"""Quotation marks and apostrophes."""

import pytest

from ledeline.inference.typography.finish import finish

LEDE = 'The minister said the "historic deal" was done, and that "we will not go back".'


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        # What the lede quotes tells where a quotation ends, or begins.
        ("Minister hails 'historic deal with union", "Minister hails 'historic deal' with union"),
        ("Minister hails historic deal' with union", "Minister hails 'historic deal' with union"),
        ("Union told 'we will not go", "Union told 'we will not go'"),
        # A colon, or who says it.
        ("'We may go: minister", "'We may go': minister"),
        ("We may go': minister", "'We may go': minister"),
        ("Minister: 'We may go", "Minister: 'We may go'"),
        ("Minister: We may go'", "Minister: 'We may go'"),
        ("Minister says 'we may go soon!", "Minister says 'we may go soon!'"),
        ("Minister: 'We may...", "Minister: 'We may...'"),
        # Else a mark without a partner goes.
        ("Minister calls 'deal with union over", "Minister calls deal with union over"),
        ("Minister calls big' deal with union over", "Minister calls big deal with union over"),
        # One style; the other inside it.
        ('Minister hails "historic deal"', "Minister hails 'historic deal'"),
        ("Minister hails 'historic deal\"", "Minister hails 'historic deal'"),
        ("'Done' deal is \"over\"", "'Done' deal is 'over'"),
        ("\"Will end 'old deal' soon\": minister", "'Will end \"old deal\" soon': minister"),
        ("'It was like 'The Shining''", "'It was like \"The Shining\"'"),
        # Marks apart from their words, and those of the Treebank.
        ("Minister hails `` historic deal ''", "Minister hails 'historic deal'"),
        ('Minister hails " historic deal " again', "Minister hails 'historic deal' again"),
        ("Minister hails 'historic deal ' again", "Minister hails 'historic deal' again"),
        ("Minister quits ': report", "'Minister quits': report"),
        ("' Minister quits", "Minister quits"),
        ("Minister quits '", "Minister quits"),
        ("Leaders ' talks end", "Leaders' talks end"),
        ("Minister’s 'historic' deal", "Minister's 'historic' deal"),
    ],
)
def test_it_is_mended(text, printed):
    assert finish(text, LEDE) == printed
    assert finish(printed, LEDE) == printed


@pytest.mark.parametrize(
    "text",
    [
        "Leaders' talks on victims' families end",
        "Minister hails 'historic deal' of workers' unions",
        "'Nothing of the leaders' plans' is left",
        "Music of the '90s and '00s returns",
        "Rock 'n' roll and 'the '90s' return",
        "First sale since '97-'98",
        "Dunkin' Brands cuts forecast",
        "'We won't,' says O'Neill",
        "'Destiny 2''s new season",
        'Nail of 5" found',
        "'Face the Nation' on 'Sunday'",
        "(‘No’) « Non »",
        'Workers\' unions "split"',  # single marks would be mistaken
    ],
)
def test_what_is_right_stays(text):
    assert finish(text, LEDE) == text


def test_an_apostrophe_of_the_lede_stays():
    assert finish("Visitors to Hawai' leave", "Visitors left Hawai' on Monday.").count("'") == 1
    assert finish("Visitors to Hawai' leave", "Visitors left.").count("'") == 0
