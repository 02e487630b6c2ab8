"""The words of the synthetic newsroom: pieces of names, ranges of numbers, phrases.

All people, companies, teams and places are invented. What the desks write with these words, and the
notation of templates, is in :mod:`ledeline.synth.desks`.
"""

from typing import NamedTuple

# A name is one piece of each list, glued together.

NAMES = {
    "surname": (
        """Abr Ald Ansk Bel Bor Brand Brev Cald Corv Dall Dor Drev Eld Fald Fenn Gald Gorm Grev
        Hald Harr Hov Isk Jarn Jor Kald Kess Kor Lann Lind Lor Mall Mer Mord Nald Ned Olv Ost Pell
        Prest Quill Rav Renn Rost Sald Sel Stav Tall Tev Thor Ulr Vald Ves Vor Wend Will Yor Zald
        Zell""",
        """aro en ick oway ane ini ovar eska ow urn ado eth imo ers anko ing ell itz oda uren averi
        olm andi ewe ist orva ulin asco ade ent""",
    ),
    "city": (
        """Ash Bal Bask Birk Bram Cad Carn Cove Dal Darn East Elm Fal Farn Glen Gran Har Hol Ister
        Jas Kar Kirk Lam Lang Marl Mel Mir Nar New Nor Old Orm Pal Pel Quar Ral Rock Sal San Sten
        Tam Thorn Tor Ul Val Var Vel West Wil Yar Zan""",
        """bury by cester dale den dovo field ford gate ham haven hurst lino mark mere mont more
        mouth nova port rado ridge rino stad stead stow ton vale vik ville wick wold worth""",
    ),
    "country": (
        """Ard Balk Borg Cand Corv Dalk Drav Est Falk Galv Hest Jorv Kand Kars Lavr Lorv Marv Nov
        Orv Palm Quir Rosk Sarm Talv Tord Ulm Valk Velm Zamd Zer""",
        "ia ora una ovia esh istan",
    ),
    "company": (
        """Askri Belda Brava Corvi Dromi Dulva Eska Felda Fulvi Gorra Havi Hulda Ilma Irvi Jorri
        Kelda Krava Luvo Lyssa Marro Mosca Nauri Nurri Ostra Ovri Pirra Pravi Quebra Rudra Ruvi
        Skara Stavi Sulva Trava Tulli Umbri Urda Vosta Vrelli Wexi Wolda Yalda Zorra Zuvi""",
        """bex cel con dane dex dyn fane gant hart lann lex lund mont nor pan rand ron stal
        tesk vex""",
    ),
    "storm": (
        "Al Bel Cor Dar El Fen Gal Hel Is Jun Kal Lor Mir Nor Or Per Ros Sel Tam Ver Wen Zar",
        "a ina o ea ias une ita ander en is",
    ),
    "given": (
        """Anna Marek Elena Tomas Ida Victor Nora Samuel Clara Ivan Lena Hugo Rosa Felix Mina Oscar
        Vera Anton Julia Emil Irene Pavel Sofia Leon Greta Adam Maya Simon Laila Karl Dora Omar
        Ines Bruno Tessa Alma Rafael Nadia Erik Olga Daniel Petra Milan Zara Martin Freya Stefan
        Amira Jonas Selma Andre Lucia Matteo Hana Boris Celia Ravi Ingrid Kenji Marta Tariq Elsa
        Jorge Aisha Nils Carla Henrik Yasmin Paolo Sigrid Kofi Livia Dmitri Asha Walter Noemi Lars
        Farah Bianca Idris Helga Mateus Reina Gustav Tamar Joel Edda Rashid Flora Axel Sunita
        Moritz Dalia Casper Imani Roland Agnes Teo Mirela Edwin Salma Jasper Linnea Kamil Odile
        Ruben Hilda Zoran""",
    ),
    "suffix": ("Holdings Group Industries International Partners Brothers Corporation",),
    "nickname": (
        """Rovers United Falcons Wanderers City Athletic Rangers Albion Bears Comets Hornets Wolves
        Kings Raiders Lions Mariners Pilots Sharks Spartans Tigers Bulls Foxes Hawks Knights Miners
        Royals Saints Stars Storm Titans""",
    ),
}


class Number(NamedTuple):
    """The range of a number, of which small ones are likelier, and how it is written."""

    low: int
    high: int
    style: str = "plain"  # spelled: "fourteen" -> "14"; tenths: 42 -> "4.2"; grouped: "1,200"


NUMBERS = {
    "few": Number(2, 9, "spelled"),
    "dead": Number(2, 60, "spelled"),
    "hurt": Number(5, 240, "spelled"),
    "jobs": Number(2, 180, "hundreds"),
    "crowd": Number(10, 900, "hundreds"),
    "level": Number(2011, 29870, "grouped"),
    "percent": Number(4, 99, "tenths"),
    "inflation": Number(11, 99, "tenths"),
    "share": Number(501, 689, "tenths"),
    "magnitude": Number(48, 79, "tenths"),
    "barrel": Number(41, 129, "dollars"),
    "wind": Number(110, 270),
    "years": Number(2, 30, "spelled"),
    "age": Number(67, 103),
    "older": Number(41, 69),
    "year": Number(1961, 2019),
    "minority": Number(3, 49),
    "votes": Number(51, 98),
    "decades": Number(3, 6, "spelled"),
    "cash": Number(12, 890, "thousands of dollars"),
}
NUMBER_WORDS = dict(
    enumerate(
        """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
        fifteen sixteen seventeen eighteen nineteen twenty""".split()
    )
) | {24: "two dozen", 30: "thirty", 36: "three dozen", 40: "forty", 48: "four dozen", 50: "fifty"}

# A slot's entries, separated by semicolons, the likelier first: "lede = headline", what the lede
# says and what the headline makes of it. Without "=" plain words stay as they are, less articles,
# and a template says nothing in the headline. Words are linked in order, articles left out, or all
# with all where their numbers differ; in a template only words with equal keys are linked.

WORDS = {
    # -- time and place -----------------------------------------------------------------------
    "weekday": "Monday; Tuesday; Wednesday; Thursday; Friday; Saturday; Sunday",
    "day": """on {weekday}; late on {weekday}; early on {weekday}; on {weekday} morning; on
        {weekday} evening""",
    "month": """January; February; March; April; May; June; July; August; September; October;
        November; December""",
    "trading": "Monday; Tuesday; Wednesday; Thursday; Friday",
    "workday": "on {trading}; late on {trading}; early on {trading}; on {trading} morning",
    "part": "northern; southern; eastern; western; central; north-eastern; south-western",
    "town": """city; port city; town; market town; border city; mining town; coastal resort;
        fishing town""",
    "ago": "last week; last month; earlier this year; in {year*}; last year; two years ago",
    "span": "hours; a day; two days; a week; two weeks; a month; three months",
    # -- up, down, steady: for one and for many -----------------------------------------------
    "rise": """rose = rise; climbed = climb; gained = gain; advanced = advance; jumped = jump;
        rallied = rally; rebounded = rebound; surged = surge""",
    "fall": """fell = fall; dropped = drop; slid = slide; slipped = slip; declined = fall;
        tumbled = tumble; retreated = retreat; sank = sink; plunged = plunge""",
    "rises": """rose = rises; climbed = climbs; increased = rises; jumped = jumps; surged =
        surges; went up = rises; advanced = gains; soared = soars""",
    "falls": """fell = falls; dropped = drops; declined = falls; eased = eases; slid = slides;
        decreased = falls; sank = sinks; went down = falls""",
    "raises": "raised = raises; lifted = lifts; increased = raises; pushed up = raises",
    "cuts": "cut = cuts; lowered = cuts; reduced = cuts; trimmed = trims; slashed = slashes",
    "keeps": "left = keeps; kept = keeps; held = holds; maintained = keeps",
    # -- money --------------------------------------------------------------------------------
    "shares": "shares; stocks; share prices = shares; equities = stocks; stock prices = stocks",
    "worry": """fears/f of a recession/r = recession/r fears/f; concern/c about rising
        inflation/i = inflation/i worries/c; fears/f of a trade/t war/w = trade/t war/w fears/f;
        weak bank/b earnings/e = bank/b earnings/e; anxiety/a over mounting public debt/d = debt/d
        fears/a; uncertainty/u about the coming election/e = election/e doubts/u; disappointing
        factory/f figures/g = factory/f data/g; a sharp drop/d in oil/o prices = oil/o slump/d; a
        profit/p warning/w from {company5} = {company5} profit/p warning/w""",
    "cheer": """hopes/h of a trade/t agreement/a = trade/t deal/a hopes/h; strong bank/b
        earnings/e = bank/b earnings/e; hopes/h for lower/l interest/r rates/r = rate/r cut/l
        hopes/h; upbeat factory/f figures/g = factory/f data/g; a steep rise/r in oil/o prices =
        oil/o rally/r; relief/r over the election/e result = election/e relief/r; a stimulus/s
        package announced in {country5} = {country5} stimulus/s""",
    "shortage": """fears/f of disruption to supplies/s = supply/s fears/f; reports/r of an
        attack/a on a pipeline/p = pipeline/p attack/a reports/r; an unexpected fall/f in
        stockpiles/s = stockpile/s drop/f; tension/t along the border of {country5} = {country5}
        tension/t; a cut/c in output/o by producers = output/o cut/c""",
    "glut": """signs/s of weaker demand/d = demand/d worries/s; a surprise rise/r in stockpiles/s
        = stockpile/s build/r; the end/e of a strike/s at refineries = strike/s end/e; hopes/h for a
        ceasefire/c in {country5} = {country5} truce/c hopes/h""",
    "measure": """annual inflation/i = inflation/i; unemployment; the unemployment/u rate/r =
        jobless/u rate/r; wage growth; youth unemployment""",
    "flow": "exports; sales; imports; deliveries",
    "goods": """cars/c = car/c; ships/c = ship/c; medicines/c = drug/c; cereals/c = grain/c;
        computer chips/c = chip/c; textiles/c = textile/c; machine tools/c = tool/c; flowers/c =
        flower/c; tyres/c = tyre/c; timber/c = timber/c; bicycles/c = bicycle/c""",
    "quarter": """first-quarter = Q1; second-quarter = Q2; third-quarter = Q3; fourth-quarter =
        Q4; half-year; full-year = annual""",
    "profit": "net profit/p = profit/p; operating profit/p = profit/p; earnings = profit; revenue",
    "industry": """steel; software; shipping; retail; drug; chemicals; insurance; mining;
        airline; telecommunications; toy; brewing; cement; furniture; textile; banking;
        engineering""",
    "concern": "company; group; company; conglomerate; giant; start-up",
    "is_company": """, the {country.adj*} {industry*} {concern*} ,; , the world's {rank*}
        {industry*} {concern*} ,; , which employs {crowd*} people in {country*} ,; , a {industry*}
        {concern*} based in {city*} ,""",
    "rank": "second-largest; third-largest; biggest; fastest-growing; oldest",
    "staff": "jobs; positions = jobs; posts = jobs; workers = jobs",
    # -- state --------------------------------------------------------------------------------
    "minister": """prime minister = PM; finance minister; foreign minister; interior
        minister; defence minister; health minister; energy minister; justice minister;
        transport minister""",
    "approves": """approved = approves; passed = passes; rejected = rejects; backed = backs;
        adopted = adopts; endorsed = backs; voted down = rejects; blocked = blocks""",
    "bill": """a bill/b to overhaul the pension/p system = pension/p bill/b; a law/l tightening
        controls on guns/g = gun/g law/l; a bill/b that bans smoking/s in public places = smoking/s
        bill/b; a tax/t on sugary drinks/d = drinks/d tax/t; a plan/p to sell/s the state railway/r
        = railway/r sale/s plan/p; a ban/b on plastic/p bags/g = plastic/p bag/g ban/b; an
        overhaul/o of immigration/i rules = immigration/i overhaul/o; a law/l protecting
        whistleblowers/w = whistleblower/w law/l; an austerity budget; a cap/c on rents/r = rent/r
        cap/c; an amnesty/a for prisoners/p = prisoner/p amnesty/a; a bill/b to legalise gambling/g
        = gambling/g bill/b; a rise/r in the minimum/m wage/w = minimum/m wage/w rise/r""",
    "scandal": """a bribery scandal; allegations/a of plagiarism/p = plagiarism/p claims/a; a
        row/r about the budget/b = budget/b row/r; accusations/a of tax/t evasion = tax/t claims/a;
        criticism/c of the response to floods/f = flood/f criticism/c; a dispute/d over a contract/c
        for warships/w = warship/w contract/c row/d; the collapse/c of a state bank/b = bank/b
        collapse/c""",
    "chamber": "parliament; senate; national/n assembly/a = assembly/a; lower house; upper house",
    "party": """Liberal; Social Democratic; Conservative; National; Green; Labour; Progressive;
        Reform; Unity; Agrarian; Centre""",
    "post": "mayor; governor; council/c leader/l = council/c leader/l",
    "past": """a former [judge|general|banker|diplomat|television presenter|trade union leader];
        a [lawyer|doctor|professor|farmer] from {city*}; a cousin of the {minister*}""",
    "issue": """trade; border/b security/s = border/b; fishing/f rights/r = fishing/f; water;
        nuclear/n arms/a = nuclear/n; refugees/r = refugee/r; climate; energy/e supplies/s =
        energy/e; visas/v = visa/v; air safety; prisoners/p = prisoner/p; gas/g transit/t =
        gas/g""",
    "pact": "an agreement = deal; a treaty; a pact; an accord = deal; a memorandum = pact",
    "bloc": """the European Union = EU; the United Nations = UN; {country7} = {country7}; the
        African Union; the Council of Europe""",
    "urges": """urged = urges; called on = urges; pressed = presses; asked = asks; appealed to =
        urges""",
    "plea": """to/t halt/h executions/e = to/t halt/h executions/e; to/t release/f jailed
        journalists/j = to/t free/f journalists/j; to/t cut/c fuel/f subsidies/s = to/t cut/c fuel/f
        subsidies/s; to/t reopen/r its border/b crossings = to/t reopen/r border/b; to/t resume/r
        peace/p negotiations/n = to/t resume/r peace/p talks/n; to/t lift/l restrictions/c on
        imports/i = to/t lift/l import/i curbs/c; to/t investigate/p attacks/a on monasteries/m =
        to/t probe/p monastery/m attacks/a; to/t admit/a aid/d workers/w = to/t let/a in/a aid/d
        workers/w""",
    "reaction": "{condemns} {deed} = {condemns} {deed}; {welcomes} {feat} = {welcomes} {feat}",
    "condemns": """condemned = condemns; denounced = slams; strongly criticised/c = slams/c;
        deplored = deplores; protested against = protests""",
    "deed": """the arrest/a of an opposition/o leader/l in {country} = {country} opposition/o
        leader/l arrest/a; the closure/c of a newspaper/n in {country} = {country} newspaper/n
        closure/c; the expulsion/e of diplomats/d from {country} = {country} diplomat/d expulsion/e;
        the launch/l of a rocket/r by {country} = {country} rocket/r launch/l; the jailing/j of
        students/s in {country} = {country} student/s jailings/j; a crackdown/c on churches/h in
        {country} = {country} church/h crackdown/c""",
    "welcomes": "welcomed = welcomes; praised = hails; applauded = applauds",
    "feat": """the release/r of hostages/h in {country} = {country} hostage/h release/r; an
        election/e in {country} = {country} vote/e; the end/e of martial/m law/l in {country} =
        {country} martial/m law/l end/e; a ceasefire/c in {country} = {country} truce/c; a pardon/p
        for prisoners/r in {country} = {country} prisoner/r pardon/p""",
    # -- law ----------------------------------------------------------------------------------
    "crime": """fraud; bribery; tax evasion; insider trading; money laundering; arson; the
        murder/m of a journalist/j = journalist/j murder/m; the theft/t of gold/g bars = gold/g
        theft/t; the smuggling/s of cigarettes/c = cigarette/c smuggling/s; trafficking/t in ivory/i
        = ivory/i trafficking/t; the kidnapping/k of a banker/b = banker/b kidnapping/k; the
        forgery/f of passports/p = passport/p forgery/f""",
    "convict": """a former mayor = ex-mayor; a businessman; a former/f bank/f executive/e =
        ex-bank/f boss/e; a police/p commander/c = police/p chief/c; a lawyer; a customs/u
        officer/o = customs/u official/o; a retired general = ex-general; a former senator =
        ex-senator; an army/a captain/c = army/a officer/c; a judge; a property/p developer/d =
        property/p tycoon/d""",
    "clears": "acquitted = clears; cleared = clears; exonerated = clears",
    "fraud": "fraud; bribery; tax evasion; price/p fixing/f = price/p fixing/f; insider trading",
    "inquiry": "an investigation = probe; an inquiry = probe; a criminal investigation/i = probe/i",
    # -- alarm --------------------------------------------------------------------------------
    "quake": "earthquake = quake; earthquake = quake; tremor = quake; quake",
    "hits": """struck = hits; hit = hits; jolted = jolts; rattled = rattles; shook = shakes;
        rocked = rocks""",
    "event": """an explosion/e at a chemical/c plant/p = chemical/c plant/p blast/e; a fire/f in
        a crowded nightclub/n = nightclub/n fire/f; the collapse/c of a bridge/b = bridge/b
        collapse/c; a landslide; an avalanche; a flash/f flood/g = flood/g; an explosion/e in a
        coal/c mine/m = mine/m blast/e; a blaze/b at a hospital/h = hospital/h fire/b; the
        collapse/c of a half-built hotel/h = hotel/h collapse/c; a stampede/s at a religious/r
        festival/f = festival/f stampede/s; a tornado""",
    "hazard": """an erupting volcano/v = volcano/v; a wildfire; rising flood/f waters/f =
        floods/f; an approaching hurricane/h = hurricane/h; a chemical leak; a bush/b fire/f =
        bush/b fire/f""",
    "crash": """a passenger bus/b plunged/c into a ravine = bus/b plunge/c; a crowded bus/b
        collided/c head-on with a lorry = bus/b crash/c; a commuter train/t derailed/c on a
        bridge = train/t derailment/c; an overloaded ferry/f capsized/c in rough seas = ferry/f
        accident/c; a light aircraft/a crashed/c into a field = plane/a crash/c; a rescue
        helicopter/h came/c down/c on a hillside = helicopter/h crash/c; a cable/a car/b fell/c
        to the valley floor = cable/a car/b fall/c; a fuel/f truck/t overturned/c and exploded =
        fuel/f truck/t accident/c""",
    "survivors": """survivors; children; people = survivors; workers; schoolgirls/g = girls/g;
        miners; tourists""",
    "ruin": "hotel; school; apartment block; market hall; hospital; textile factory; church",
    "storm_kind": "Hurricane; Typhoon; Cyclone; Tropical Storm = Storm",
    "lashes": """slammed into = hits; lashed = lashes; battered = batters; tore through = rips;
        pounded = pounds; swept across = sweeps""",
    "shuts": "closed = shuts; shut down = shuts; forced the closure of = closes; paralysed = shuts",
    "snow": """heavy snow/s = snow/s; a blizzard; dense fog/f = fog/f; freezing rain; thick
        smoke/s from forest fires = smoke/s; a dust/d storm/s = dust/d storm/s""",
    "closed": """airports; schools; regional airports/a = airports/a; mountain roads; railway
        lines/l = railways/l; motorways/m = highways/m; ports; ferry services/s = ferries/s""",
    # -- body and mind ------------------------------------------------------------------------
    "disease": """measles; cholera; bird flu; dengue/d fever = dengue/d; yellow fever;
        meningitis; typhoid; polio; whooping cough; swine fever; malaria""",
    "food": """coffee; green tea; walnuts; olive oil; dark chocolate; oily/o fish/f = fish/f;
        garlic; brown/b rice/r = rice/r; berries; afternoon/a naps/n = naps/n; daily/d walks/w =
        walks/w; yoghurt; music/m lessons/l = music/m""",
    "illness": """heart disease; stroke; diabetes; memory/m loss/l = memory/m loss/l; depression;
        high/h blood/b pressure/p = blood/b pressure/p; asthma; bowel cancer; insomnia; obesity""",
    "scientists": """scientists; researchers; field biologists/b = biologists/b; zoologists =
        scientists""",
    "finds": """discovered = find; found = find; identified = identify; uncovered = find;
        described = describe; spotted = spot""",
    "creature": """frog; beetle; orchid; bat; lizard; spider; moss; butterfly; blind/b fish/f =
        fish/f; songbird; ant; crab; fern; tree shrew; snail; mouse; bee""",
    "habitat": """rainforest/r = rainforest/r; caves; remote valleys/v = valley/v; mountain/m
        swamps/l = mountain/m swamp/l; salt/s marshes/m = salt/s marsh/m; cloud/c forests/f =
        cloud/c forest/f""",
    "relic": """a Bronze Age settlement; the bones/b of a giant/g marsupial/m = giant/g
        marsupial/m bones/b; a sunken temple; a hoard/h of silver/s coins/c = silver/s coin/c
        hoard/h; the wreck/w of a merchant/m ship/s = merchant/m ship/s wreck/w; the skeleton/s of a
        dinosaur/d = dinosaur/d skeleton/s; a Roman/r villa/v = Roman/r villa/v; footprints/f of
        early humans/h = human/h footprints/f""",
    # -- work ---------------------------------------------------------------------------------
    "workers": """railway workers; bus drivers; teachers; nurses; airport/a workers/w = airport/a
        staff/w; miners; dockers; pilots; doctors; steel workers; postal/p workers/w = mail/p
        staff/w; cleaners; air/a traffic/t controllers/c = air/a controllers/c""",
    "strike": """walked off the job = strike; went/s on/s strike/s = strike/s; stopped work =
        strike; downed tools = strike; began/b a strike/s = begin/b strike/s""",
    "demand": """higher wages/w = pay/w; shorter working/w hours/h = hours/h; plans/p to cut
        jobs/j = job/j cuts/p; changes/c to pensions/p = pension/p changes/c; safety/s
        standards/r = safety/s; unpaid/u wages/w = unpaid/u wages/w; the dismissal/d of a
        colleague = dismissal/d""",
    # -- sport and lives ----------------------------------------------------------------------
    "beat": """beat; defeated = beat; thrashed = thrash; edged = edge; overcame = beat; stunned =
        stun; eased past = beat; outclassed = beat""",
    "beats": """beat = beats; defeated = beats; overcame = beats; stunned = stuns; ousted =
        ousts; crushed = crushes; knocked out = ousts; swept past = beats""",
    "sets": "6-4 , 6-3; 6-2 , 7-5; 7-6 , 6-4; 6-1 , 6-4; 6-3 , 3-6 , 7-5; 4-6 , 6-4 , 6-2",
    "round": """third/r round/s = third/r round/s; quarter-finals/q = quarters/q; semi-finals/s =
        semis/s; final; second round; last 16""",
    "seed": "top seed; second seed; third seed; fifth seed; wild card; unseeded teenager; veteran",
    "stage": "second; fifth = 5th; third; fourth = 4th; eighth = 8th; tenth = 10th; opening",
    "player": """striker; goalkeeper = keeper; captain; midfielder; defender; winger; forward;
        full-back""",
    "injury": """a broken/b foot/f = broken/b foot/f; a knee injury; a torn/t hamstring/h =
        hamstring/h injury/t; an ankle injury; a dislocated/d shoulder/s = shoulder/s injury/d; a
        back injury""",
    "nth": "second; third; fourth; fifth; sixth",
    "planet": "Mars; Venus; Jupiter; Saturn; the Moon; Mercury",
    "job": """novelist; architect; film director = filmmaker; composer; painter; poet; opera/o
        singer/s = opera/o singer/s; mathematician; chess/c champion/h = chess/c champion/h;
        photographer; playwright; mountaineer = climber; jazz/j trumpeter/t = jazz/j player/t;
        fashion/f designer/d = designer/d""",
    "fame": """whose work was admired far beyond {country*}; who taught for {years*} years in
        {city*}; whose career lasted more than {decades*} decades; who fled {country*} as a child;
        who was jailed in {country*} in {year*}; whose friends included {person*} and {person*}; who
        won the {city*} prize in {year*}; who grew up in a poor district of {city*}""",
}
