"""British and American forms of words.

Made of stems and endings. A stem is listed only where both forms with all these endings are the
same word, or no word at all: no hour, size, advise, control or glamour.
"""

from collections.abc import Iterator
from functools import cache
from typing import Final, Literal, NamedTuple, TypeAlias

# When a word takes its other form: by the spelling of other words of the lede ("both"); by these
# only if the other form is the American one, which has other meanings, too ("american"); only if
# the lede has the other form of the very word ("word"). "ize" is like "both", but British and
# Canadian texts have either form.
Reach: TypeAlias = Literal["both", "american", "word", "ize"]


class Variant(NamedTuple):
    """The other form of a word."""

    other: str
    is_british: bool  # the word itself, not its other form
    reach: Reach


_OUR: Final = """
    arb arm behavi cand clam col demean discol disfav dishon endeav fav ferv flav harb hon hum lab
    misbehavi misdemean multicol neighb od parl ranc rig rum sav savi splend tum unfav val vap vig
    watercol
"""
_OUR_ENDINGS: Final = """
    s ed ing er ers ful fully less able ably al ally ee ees hood hoods ite ites itism ly y ies
"""
_RE: Final = """
    amphitheat calib cent centimet epicent fib kilomet lit lust meag millimet mit nanomet och sab
    scept sepulch somb spect theat
"""
_ISE: Final = """
    agon american amort anonym antagon apolog atom author bapt brutal cannibal canon capital
    caramel categor central character civil coloni colon commercial commod compartmental
    computer conceptual contextual criminal critic crystall custom decentral decolon decriminal
    dehuman demil demilitar demobil democrat demon demonet demoral denational deput desensit
    destabil destigmat digital disincentiv disorgan dramat econom editorial emphas energ epitom
    equal eulog euthan external familiar fantas fertil fictional final formal fossil galvan general
    global harmon hospital human hybrid hypnot hypothes ideal idol immobil immortal immun
    incentiv individual industrial initial institutional internal international item jeopard legal
    legitim liberal lion local magnet marginal material maxim mechan memor memorial mesmer
    metabol militar miniatur minim mobil modern monet monopol moral motor national natural neutral
    normal operational optim organ ostrac oxid pasteur patron penal personal philosoph plagiar
    polar politic popular pressur priorit privat professional public pulver radical random
    rational real reauthor recapital recogn regular reorgan revital revolution romantic sanit
    satir scandal scrutin secular securit sensational sensit sexual social special stabil standard
    steril stigmat styl subsid summar symbol sympath synchron synthes systemat tantal tender
    terror theor token tranquill traumat trivial union unauthor unrecogn urban util vandal vapor
    verbal victim visual vital vocal weapon western winter
"""
_ISE_ENDINGS: Final = """
    ise ises ised ising isation isations isational iser isers isable
"""
_YSE: Final = "anal breathal catal paral psychoanal overanal"
_DOUBLED: Final = """
    bevel channel chisel counsel dial drivel duel enamel equal fuel funnel gambol gravel grovel
    hovel jewel kennel label level libel marshal marvel medal model panel parcel pedal pencil pummel
    quarrel refuel relabel remodel revel rival shovel shrivel signal snivel snorkel spiral stencil
    swivel total towel travel trowel tunnel unravel
"""
_BOTH: Final = """
    aeroplane:aeroplane aluminium:aluminum anaemia:anemia anaemic:anemic
    anaesthesia:anesthesia anaesthetic:anesthetic anaesthetics:anesthetics armoury:armory
    centred:centered centring:centering recentre:recenter
    centrepiece:centerpiece centrepieces:centerpieces centreline:centerline fibreglass:fiberglass
    theatregoers:theatergoers theatregoer:theatergoer cosy:cozy cosier:cozier
    counsellor:counselor counsellors:counselors defence:defense defences:defenses
    defenceless:defenseless offence:offense offences:offenses pretence:pretense
    diarrhoea:diarrhea distil:distill distils:distills enrol:enroll enrols:enrolls
    enrolment:enrollment enrolments:enrollments faeces:feces faecal:fecal
    fulfil:fulfill fulfils:fulfills fulfilment:fulfillment furore:furor
    gynaecologist:gynecologist gynaecology:gynecology gynaecological:gynecological
    haemoglobin:hemoglobin haemophilia:hemophilia haemorrhage:hemorrhage
    haemorrhaging:hemorrhaging haemorrhaged:hemorrhaged instalment:installment
    instalments:installments instil:instill instils:instills jeweller:jeweler jewellers:jewelers
    jewellery:jewelry leukaemia:leukemia manoeuvre:maneuver manoeuvres:maneuvers
    manoeuvred:maneuvered manoeuvring:maneuvering marvellous:marvelous mould:mold moulds:molds
    mouldy:moldy moulded:molded moustache:mustache moustaches:mustaches
    oestrogen:estrogen orthopaedic:orthopedic paediatric:pediatric paediatrics:pediatrics
    paediatrician:pediatrician paediatricians:pediatricians paedophile:pedophile
    paedophiles:pedophiles paedophilia:pedophilia plough:plow ploughs:plows ploughed:plowed
    ploughing:plowing pyjamas:pajamas sceptic:skeptic sceptics:skeptics sceptical:skeptical
    scepticism:skepticism skilful:skillful skilfully:skillfully smoulder:smolder
    smoulders:smolders smouldering:smoldering sulphur:sulfur wilful:willful wilfully:willfully
    woollen:woolen tumour:tumor
"""
_AMERICAN: Final = """
    cheque:check cheques:checks chequebook:checkbook kerb:curb kerbs:curbs kerbside:curbside
    licence:license licences:licenses metre:meter metres:meters practise:practice
    practised:practiced practising:practicing practises:practices programme:program
    programmes:programs storey:story storeys:stories tyre:tire tyres:tires
"""
_WORD: Final = """
    acknowledgement:acknowledgment ageing:aging analogue:analog artefact:artifact
    artefacts:artifacts axe:ax axed:axed cancelled:canceled cancelling:canceling
    catalogue:catalog catalogues:catalogs chilli:chili dialogue:dialog dialogues:dialogs
    encyclopaedia:encyclopedia epilogue:epilog foetus:fetus foetal:fetal grey:gray greys:grays
    judgement:judgment judgements:judgments learnt:learned likeable:likable mum:mom mums:moms
    prologue:prolog burnt:burned spelt:spelled tsar:czar tsars:czars yoghurt:yogurt
    yoghurts:yogurts
"""


@cache
def spelling_variants() -> dict[str, Variant]:
    """The other form of each word, by the word in lower case."""
    variants = dict[str, Variant]()
    for british, american, reach in _pairs():
        if british != american:
            variants.setdefault(british, Variant(american, is_british=True, reach=reach))
            variants.setdefault(american, Variant(british, is_british=False, reach=reach))
    return variants


def _pairs() -> Iterator[tuple[str, str, Reach]]:
    """The British form of each word, the American one, and how far the pair goes."""
    listed: tuple[tuple[str, Reach], ...] = (
        (_BOTH, "both"), (_AMERICAN, "american"), (_WORD, "word"),
    )  # fmt: skip
    for words, reach in listed:
        for pair in words.split():
            british, american = pair.split(":")
            yield british, american, reach
    for stem in _OUR.split():
        for ending in ["", *_OUR_ENDINGS.split()]:
            yield f"{stem}our{ending}", f"{stem}or{ending}", "both"
    for stem in _RE.split():
        for ending in ("", "s"):
            yield f"{stem}re{ending}", f"{stem}er{ending}", "both"
    for stem in _ISE.split():
        for ending in _ISE_ENDINGS.split():
            yield stem + ending, stem + ending.replace("is", "iz", 1), "ize"
    for stem in _YSE.split():
        for ending in ("se", "sed", "sing", "ser", "sers"):  # "analyses" is a noun, too
            yield f"{stem}y{ending}", f"{stem}yz{ending[1:]}", "ize"
    for stem in _DOUBLED.split():
        for ending in ("ed", "ing", "er", "ers"):
            yield f"{stem}l{ending}", f"{stem}{ending}", "both"
