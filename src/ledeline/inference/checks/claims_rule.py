"""Claims that the lede has no word for: deaths, arrests, victories, quotations that nobody said."""

from collections.abc import Iterator
from functools import cache
from typing import Final

from ledeline.core.patterns import lazy_pattern
from ledeline.inference.checks.doubt import Doubt
from ledeline.inference.checks.pair_words import PairWords, stem_of

_QUOTED: Final = lazy_pattern(r"(?:^|[\s(:,])(['‘\"“](.+?)['’\"”])(?=$|[\s),:;.?!])")

# What indirect speech changes: "he would" is "I will" in a quotation.
_SPOKEN: Final = frozenset("i my me mine we our us will am is are".split())

# Words of a headline | other words of which the lede must have one. More lines may follow with the
# first word alone.
_CLAIMS: Final = """
dies died dead death deaths dying killed kills kill |
dies | die killing murder murdered fatal fatally body bodies corpse funeral late mourn mourning
dies | passed homicide drown drowned slain victim victims toll obituary suicide shot manslaughter
dies | lives life lost casualties massacre execution executed deadly stab more
wins win won beats beat defeats defeat beaten |
wins | expected above winning winner victory victories beating defeated triumph triumphed better
wins | exceeded topped title champion champions seal sealed overcome thrash edge edged rout
wins | success gold crush past lead claim claimed loss lost lose loses losing elected award
wins | awarded ruled outlast sweep swept clinch secure ended draw advance advanced
arrested arrest arrests |
arrested | detained detain custody held charged nabbed apprehended booked nab caught
charged | charge charges indicted accused booked prosecuted arraigned count counts
jailed jail | prison sentence sentenced imprisoned imprisonment bars
buys buy bought acquires acquire |
buys | acquired acquisition purchase takeover deal bid stake merger buying takes pay splash
probe probes probed investigates investigation |
probe | investigate investigating investigators inquiry examine inquest probing looking
probe | allegations review scrutiny study
resigns resign quits quit |
resigns | resigned resignation step stepped stepping leave leaving left exit depart departure
resigns | retire
sues sue sued lawsuit | suit court legal complaint litigation claim class
fired sacked sacks fires | fire sack dismiss dismissed ousted axed job parted shot firing
injured wounded injures | injury injuries wound hurt hospital
suspended | suspend suspension ban banned
banned ban bans |
banned | banning prohibit prohibited outlaw block blocked bar barred forbid suspended suspension
banned | restrict prohibition
married marries marry | wedding marriage wed bride groom wife husband spouse
pregnant | pregnancy baby expecting
divorce divorced | split separated
guilty | convicted conviction plead pleaded jury sentence sentenced
convicted | guilty conviction sentenced jury verdict
approves approve approved |
approves | approval pass passed green backed authorize clear cleared vote voted agreed endorse ok
returns return returned | back comeback again home resume resumed rejoin reunite returning
"""


def quote_doubts(pair: PairWords) -> Iterator[Doubt]:
    """Quotations with words that the lede does not have."""
    for found in _QUOTED.finditer(pair.headline):
        start, end = found.span(1)
        inside = [word for word in pair.words if start < word.start and word.end < end]
        missing = [
            word for word in inside if word.stem not in pair.lede.stems and word.low not in _SPOKEN
        ]
        if len(missing) > 1 or (missing and len(inside) < 4):
            yield pair.doubt_at(start, end, "added", "the lede has no such quotation")


@cache
def _claims() -> dict[str, frozenset[str]]:
    """A word of a headline -> stems of which the lede must have one."""
    words: dict[str, list[str]] = {}
    needed: dict[str, set[str]] = {}
    for line in _CLAIMS.strip().splitlines():
        said, _, others = line.partition("|")
        first, *_ = said.split()
        words.setdefault(first, []).extend(said.split())
        needed.setdefault(first, set()).update(map(stem_of, (said + others).split()))
    return {word: frozenset(needed[first]) for first in words for word in words[first]}


def claim_doubts(pair: PairWords) -> Iterator[Doubt]:
    """Strong words that nothing in the lede stands for."""
    claims = _claims()
    for low in pair.lows & claims.keys():
        if claims[low].isdisjoint(pair.lede.stems):
            word = next(word for word in pair.words if word.low == low)
            yield pair.doubt([word], "added", f'the lede does not say "{low}"')
