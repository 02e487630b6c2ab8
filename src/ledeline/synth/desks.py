"""The templates of the synthetic newsroom: ledes and their headlines, for each desk.

The notation::

    word/key     a word with a key; a headline word comes from the lede words of the same key
    word/        the same, the word itself being the key
    word         a word without a key: dropped from the lede, or a function word of the headline
    {name}       a slot, the same throughout a story; digits tell slots of one kind apart
    {name.form}  another form of it, such as a country's adjective
    {name~}      the slot repeated, not linked: a word that is not the source of the headline word
    {name*}      a distractor: new words of that kind each time, never linked
    [one|other]  any of them
    (words)      in a lede: half the time; in a headline: if the lede has those keys
    ;            between templates

A headline is used only with a lede that has all its keys, so a scene's ledes and headlines combine
freely. What the slots say is in :mod:`ledeline.synth.lexicon`.
"""

from typing import NamedTuple


class Scene(NamedTuple):
    """One kind of event: its desk, templates of ledes, and templates of headlines."""

    desk: str
    ledes: str
    headlines: str


SCENES = (
    Scene(
        "markets",
        """{shares} in {city} {fall} {percent} percent/p {workday} as/on {worry} [weighed on the
        market|unsettled investors|hurt exporters] {money_end};
        After [rising|gaining] {percent*} percent in the previous session , {city} {shares}
        {fall} {percent} percent/p {workday} as/on {worry} [unnerved|worried] [buyers|traders]
        {money_end};
        {worry} [pushed|drove|dragged] {shares} in {city} down/d {percent} percent/p {workday} ,
        with the main index closing at {level*} points {money_end}""",
        """{city} {shares} {fall} {percent} pct/p on/ {worry}; {city} {shares} down/d {percent}
        pct/p on {worry}""",
    ),
    Scene(
        "markets",
        """{shares} in {city} {rise} {percent} percent/p {workday} as/on {cheer} [lifted|cheered]
        [investors|the market] {money_end};
        After [falling|losing] {percent*} percent in the previous session , {city} {shares}
        {rise} {percent} percent/p {workday} on/ {cheer} {money_end};
        {cheer} [sent|helped push] {shares} in {city} up/u {percent} percent/p {workday} , with
        the main index closing at {level*} points {money_end}""",
        """{city} {shares} {rise} {percent} pct/p on/ {cheer}; {city} {shares} up/u {percent} pct/p
        on {cheer}""",
    ),
    Scene(
        "oil",
        """(The price of) crude oil/o {rises} [by {percent*} percent|further] to/ {barrel} a barrel
        {workday} as/on {shortage} [alarmed|worried] [traders|buyers] in {city*} {money_end};
        Already up {percent*} percent this [week|month|year] , crude oil/o {rises} to/ {barrel}
        a barrel {workday} on/ {shortage} {money_end};
        Crude oil/o {falls} [by {percent*} percent|further] to/ {barrel} a barrel in {city*}
        {workday} as/on {glut} [outweighed|overshadowed] unrest in {country*} {money_end}""",
        """Oil/o {rises} to/ {barrel} on/ {shortage}; Oil/o {falls} to/ {barrel} on/ {glut}""",
    ),
    Scene(
        "central banks",
        """The central/ bank/ of {country} {raises} its [key|benchmark|main] interest/r rate/r by
        {hike.step} to/ {hike} percent/ {workday} , citing [stubborn|rising] inflation
        {money_end};
        {gloss} the {country.adj} central/ bank/ {raises} its interest/r rate/r from/
        {hike.before} percent/p to/ {hike} percent/ {workday} {money_end};
        Worried by [rising prices|a weak currency|a housing boom] , policymakers at the central/
        bank/ of {country} voted {workday} to raise/v the [key|main] interest/r rate/r to/
        {hike} percent/ {money_end}""",
        """{country} central/ bank/ {raises} rate/r (from/ {hike.before} percent/p) to/ {hike}
        percent/; {country} central/ bank/ raises/v rate/r to/ {hike} percent/""",
    ),
    Scene(
        "central banks",
        """The central/ bank/ of {country} {cuts} its [key|benchmark|main] interest/r rate/r by
        {cut.step} to/ {cut} percent/ {workday} , citing [weak growth|falling exports]
        {money_end};
        The [key|main] interest/r rate/r in {country} will/t be cut/c to/ {cut} percent/ next
        month , the central/ bank/ said {workday} {money_end};
        {gloss} the central/ bank/ of {country} {keeps} its [key|main] interest/r rate/r
        unchanged/s at/ {cut} percent/ {workday} {money_end}""",
        """{country} central/ bank/ {cuts} rate/r to/ {cut} percent/; {country} central/ bank/ to/t
        cut/c rate/r to/ {cut} percent/; {country} central/ bank/ {keeps} rate/r steady/s at/
        {cut} percent/""",
    ),
    Scene(
        "economy",
        """{measure} in {country} {rises} to/ {inflation} percent/ in {month*} , compared with a
        forecast of {inflation*} percent , the statistics office said {workday} {money_more};
        The statistics office of {country} said {workday} that {measure} {falls} to/ {inflation}
        percent/ in {month*} {money_end}""",
        """{country} {measure} {rises} to/ {inflation} percent/; {country} {measure} {falls} to/
        {inflation} percent/""",
    ),
    Scene(
        "economy",
        """{flow} of {goods} in {country} {fall} {percent} percent/ in/ {month} , [official
        figures|a survey] showed {workday} , while {flow*} of {goods*} were [flat|unchanged]
        {money_end};
        Helped by a weaker currency , {country.adj} {flow} of {goods} {rise} {percent} percent/
        in/ {month} {money_end}""",
        """{country} {goods} {flow} {fall} {percent} percent/ in/ {month}; {country} {goods} {flow}
        {rise} {percent} percent/ in/ {month}""",
    ),
    Scene(
        "results",
        """{company} {is_company} said {workday} that its {quarter} {profit} {rises} {percent}
        percent/ to/ {money} {money_more};
        Helped by [higher prices|strong demand|new contracts] in {country*} , {company}
        {is_company} reported {workday} that {quarter} {profit} {rises} {percent} percent/
        {money_end};
        {quarter} {profit} at {company} {falls} {percent} percent/ to {money*} , the {industry*}
        {concern*} said {workday} , blaming [a strike|bad weather|high costs] {money_end}""",
        """{company} {quarter} {profit} {rises} {percent} percent/ (to/ {money}); {company}
        {quarter} {profit} {falls} {percent} percent/""",
    ),
    Scene(
        "results",
        """{company} {is_company} said {workday} that it would/t cut/c approximately/a {jobs}
        {staff} [at|by closing] its [plant|offices] in/ {city} {money_end};
        {gloss} {company} {is_company} will/t cut/c {jobs} {staff} in/ {city} {money_end};
        Up to {jobs} {staff} will/t be cut/c at {company} 's plant in/ {city} , [the {concern*}
        said|union leaders were told] {workday} {money_end}""",
        """{company} to/t cut/c (about/a) {jobs} {staff} in/ {city}""",
    ),
    Scene(
        "deals",
        """{company} {is_company} [agreed|said it had agreed] {workday} to/ buy/ [smaller rival|its
        rival] {company2} for/ {money} [in cash|in shares|] {money_end};
        {company2} {is_company} will/to be bought/buy by {company} for/ {money} [in cash|] under
        an agreement [announced|reached] {workday} {money_end};
        {company} {is_company} completed/f the acquisition/a of/ {company2} for {money}
        {workday} , {span*} after dropping a bid for {company*} {money_end}""",
        """{company} to/ buy/ {company2} for/ {money}; {company} completes/f {money} takeover/a of/
        {company2}""",
    ),
    Scene(
        "deals",
        """{company} {is_company} {workday} named/n {person} , {older*} , as its new/ chief/c
        executive/c [to replace|in place of] {person*} {money_end};
        {person} , who once ran {company*} , was named/m {workday} as chief/c executive/c of/
        {company} {is_company} {money_end};
        {company} {is_company} [opened|has opened] talks/t with/ its lenders/l {workday} about/o
        [the repayment|a delay in the repayment] of debts/d of {money} {money_end}""",
        """{company} names/n {person} new/ CEO/c; {person} named/m CEO/c of/ {company}; {company}
        in talks/t with/ lenders/l on/o {money} debt/d""",
    ),
    Scene(
        "politics",
        """{gloss} the {chamber} of {country} {approves} {bill} {day} by {votes*} votes to
        {minority*} {state_end};
        Members of the {country.adj} {chamber} {approves} {bill} {day} {state_end};
        {bill} was approved/v {day} by the {chamber} of {country} , where the {party*} Party
        [holds|recently lost] {few*} seats {state_end}""",
        """{country} {chamber} {approves} {bill}; {country} {chamber} approves/v {bill}""",
    ),
    Scene(
        "politics",
        """The {minister} of {country} , {person} , resigned/v {day} over/ {scandal} {state_end};
        {country.adj} {minister} {person} , who took office {ago*} , was dismissed/d {day} over/
        {scandal} {state_end};
        {scandal} forced the {minister} of {country} , {person} , to resign/v {day} {state_end};
        Thousands/t of people marched/m through/ {city} {day} in protest against/ {bill}
        {state_end}""",
        """{country} {minister} resigns/v over {scandal}; {country} {minister} {person} sacked/d
        over/ {scandal}; Thousands/t march/m through/ {city} against/ {bill}""",
    ),
    Scene(
        "elections",
        """{person} of the {party*} Party won/w the presidential/p election/e in {country} {day}
        with/ {share} percent/c of the vote , [defeating|beating] {person*} {state_end};
        {country.adj} voters elected/v {person} , {past*} , as president/p {day} in a run-off
        against {person*} {state_end};
        The {party} Party/ of {person*} lost/l its majority/m in/ the parliamentary election/e
        in {country} {day} {state_end}""",
        """{person} wins/w {country} presidential/p vote/e with/ {share} percent/c; {country}
        elects/v {person} president/p; {party} Party/ loses/l majority/m in/ {country} vote/e""",
    ),
    Scene(
        "elections",
        """{person} , {past*} , will/t run/r for/ {post} of {city} [against|in place of] {person*}
        {state_end};
        {gloss} {person} , the {post} of {city} , ruled/r out/n a bid for another/ term/ {day}
        {state_end};
        The {post} of {city} , {person} , lost/l a bid/b for another/o term/o {day} in an
        election [against|won by] {person*} , {past*} {state_end}""",
        """{person} to/t run/r for/ {city} {post}; {city} {post} {person} rules/r out/n another/
        term/; {city} {post} {person} loses/l re-election/o bid/b""",
    ),
    Scene(
        "courts",
        """A court/ in {city} sentenced/j {convict} to {years} years in prison/j {workday} for/
        {crime} [, rejecting a plea for leniency|after a trial lasting {few*} weeks|at the end
        of a secret trial] {law_end};
        {convict} was sentenced/i to {years} years/ in prison/i by a court in {city*} {workday}
        for/ {crime} , {span*} after a [lawyer|co-defendant] was sentenced to {years*} years
        {law_end};
        A court/ in {city} {clears} {convict} of/ {crime} {workday} , [saying|ruling] that the
        court had heard no [proof|credible witness] {law_end}""",
        """{city} court/ jails/j {convict} for/ {crime}; {convict} jailed/i {years} years/ for/
        {crime}; {city} court/ {clears} {convict} of/ {crime}""",
    ),
    Scene(
        "police",
        """Police/ in {city} arrested/v {dead} people [{day}|in raids {day}] in connection with/o
        {crime} , [seizing|finding] {cash*} in cash {law_end};
        At least {dead} people , among them {convict*} , were arrested/a {day} in/ {city} [on
        suspicion|on charges] of/o {crime} {law_end};
        {gloss} prosecutors/ in {city} opened/n {inquiry} {day} into {fraud} at {company}
        {is_company} {law_end}""",
        """{city} police/ arrest/v {dead} over/o {crime}; {dead} arrested/a in/ {city} over/o
        {crime}; {city} prosecutors/ open/n {company} {fraud} {inquiry}""",
    ),
    Scene(
        "disasters",
        """A [strong|powerful|shallow|major] {quake} with a magnitude of {magnitude} {hits} {part*}
        {country} {day} , killing/k at least {dead} people and injuring/i {hurt} others ,
        {span*} after [a smaller|an earlier] {quake~} {alarm_end};
        At least {dead} people were killed/l and {hurt} others were injured/i when a [strong|]
        {quake} {hits} {part*} {country} {day} {alarm_end}""",
        """{magnitude} {quake} {hits} {country} , {dead} dead/k , {hurt} hurt/i; {quake} kills/l
        {dead} , injures/i {hurt} in {country}""",
    ),
    Scene(
        "disasters",
        """{dread} {event} killed/k at least {dead} people in/ the {town*} of {city} {day}
        {alarm_end};
        In/ the {part*} {town*} of {city} , at least {dead} people were killed/k {day} in
        {event} {alarm_end};
        At least {dead} people died/d and {hurt} more were injured/i {day} in/n {event} in the
        {town*} of {city} {alarm_end}""",
        """{event} kills/k {dead} in/ {city}; {dead} dead/d , {hurt} hurt/i in/n {city} {event}""",
    ),
    Scene(
        "disasters",
        """In/ the {town*} of {city} , rescuers/ pulled/p {few} {survivors} alive from/ the rubble/
        of a [collapsed|burnt-out] {ruin*} {day} {alarm_end};
        A total of {few} {survivors} were pulled/q alive from/ the rubble/ of a {ruin*} in/
        {city} {day} , {span*} after the {ruin*} next door collapsed {alarm_end};
        Thousands/t of people in/ the {town*} of {city} fled/f their homes {day} because of
        {hazard} , leaving behind cattle and cars {alarm_end}""",
        """Rescuers/ pull/p {few} {survivors} from/ rubble/ in/ {city}; {few} {survivors} pulled/q
        from/ rubble/ in/ {city}; Thousands/t flee/f {hazard} in/ {city}""",
    ),
    Scene(
        "accidents",
        """At least {dead} people were killed/k and {hurt} injured/i in {part*} {country*} {day}
        when/n {crash} near/ {city} {alarm_end};
        {dread} {crash} near/ {city} {day} , killing/l at least {dead} people , all of them
        [tourists|students|soldiers|pilgrims|workers on their way home] {alarm_end};
        Near/ the {town*} of {city} , {crash} {day} , and at least {dead} people were killed/l
        and {hurt*} others injured {alarm_end}""",
        """{dead} dead/k , {hurt} hurt/i in/n {crash} near/ {city}; {crash} kills/l {dead} near/
        {city}""",
    ),
    Scene(
        "weather",
        """{storm_kind} {storm} {lashes} the {part*} coast/ of {country} {day} with winds of up to
        {wind*} kilometres an hour , forcing/f {crowd} people from their homes/f {weather_end};
        The {part*} coast/ of {country} was battered/b {day} by {storm_kind} {storm} , which had
        killed {dead*} people in {country*} {weather_end};
        Forecasters in {country} warned {day} that {storm_kind} {storm} would/t strike/h the
        coast/ [within hours|by the weekend] ( , {span*} after {storm_kind*} {storm*} struck the
        same coast)""",
        """{storm_kind} {storm} {lashes} {country} coast/ , {crowd} flee/f; {storm_kind} {storm}
        batters/b {country} coast/; {storm_kind} {storm} to/t hit/h {country} coast/""",
    ),
    Scene(
        "weather",
        """{snow} {shuts} {closed} across/ {part*} {country} {day} , stranding/s {crowd} travellers
        [in {city*}|] {weather_end};
        In/ {part*} {country} , {snow} {shuts} {closed} {day} and stranded {crowd*} travellers
        {weather_end}""",
        """{snow} {shuts} {closed} across/ {country} , strands/s {crowd}; {snow} {shuts} {closed}
        in/ {country}""",
    ),
    Scene(
        "health",
        """Health officials in {country} have confirmed/c {dead} cases/ of {disease} , [most of
        them|all of them] in the {town*} of {city*} , {voice*} said {day} {health_end};
        An outbreak/o of {disease} has killed/k {dead} people in/ {part*} {country} and made
        {crowd} others ill/ , the health ministry said {day} {health_end}""",
        """{country} confirms/c {dead} {disease} cases/; {disease} outbreak/o kills/k {dead} in/
        {country} , {crowd} ill/""",
    ),
    Scene(
        "health",
        """A study/s of {crowd*} people in {country*} has found a link/k between {food} and a
        lower/l risk/r of {illness} {lab_end};
        People who regularly enjoy {food} may/m have a lower/l risk/r of {illness} , according/y
        to/y a study/s published {day} {lab_end};
        {country.adj*} scientists reported {day} that {food} may/m raise/h the risk/r of
        {illness} , a finding at odds with an earlier study {lab_end}""",
        """Study/s links/k {food} to lower/l {illness} risk/r; {food} may/m lower/l {illness}
        risk/r , study/s says/y; {food} may/m raise/h {illness} risk/r""",
    ),
    Scene(
        "science",
        """{scientists} from {country*} have {finds} a new/ species/ of {creature} in/ the
        {habitat} of {country} , the {nth*} [such find|discovery of its kind] this year
        {lab_end};
        In/ the {habitat} of {country} , {scientists} have {finds} a new/ species/ of {creature}
        that [glows in the dark|lives for only {few*} weeks|feeds on fungus] {lab_end}""",
        """{scientists} {finds} new/ {creature} species/ in/ {country} {habitat}""",
    ),
    Scene(
        "science",
        """Archaeologists/ [working|digging] near/ {city} have {finds} {relic} [{few*} metres below
        a car park|on the site of a planned road|under a school] {lab_end};
        {relic} has been found/f near/ {city} by archaeologists/ from {country*} {lab_end};
        A space probe/p launched by {country} reached/r {planet} {day} after a journey of {few*}
        years {probe_end}""",
        """Archaeologists/ {finds} {relic} near/ {city}; Archaeologists/ find/f {relic} near/
        {city}; {country} probe/p reaches/r {planet}""",
    ),
    Scene(
        "diplomacy",
        """{country} and {country2} signed/s {pact} on {issue} {day} in {city*} {state_end};
        After {few*} years of talks , the governments of {country} and {country2} signed/s
        {pact} on {issue} {day} {state_end};
        The {minister} of {country} , {person*} , arrived in/ {city} {day} for/ talks/ on
        {issue} with the {minister*} of {country*} {state_end};
        The foreign/f minister/m of {country} met/v the foreign/g minister/n of {country2} {day}
        in {city*} {state_end}""",
        """{country} , {country2} sign/s {issue} {pact}; {country} {minister} in/ {city} for/
        {issue} talks/; {country} foreign/f minister/m meets/v {country2} foreign/g minister/n""",
    ),
    Scene(
        "diplomacy",
        """{bloc} {urges} {country} {day} {plea} {state_end};
        In a statement issued in {city*} {day} , {bloc} {urges} {country} {plea} {state_end};
        {bloc} {reaction} {day} , [only hours after {state_event*}|in a statement issued in
        {city*}] {state_end};
        {deed} was condemned/c {day} by {bloc} , [although|while] {country*} [offered no
        comment|praised it] {state_end}""",
        """{bloc} {urges} {country} {plea}; {bloc} {reaction}; {bloc} condemns/c {deed}""",
    ),
    Scene(
        "labour",
        """[Hundreds|Thousands] of {workers} in {city} {strike} {day} in a dispute over/ {demand}
        {state_end};
        In a dispute over/ {demand} , [about|nearly|more than] {crowd*} {workers} in {city}
        {strike} {day} {state_end};
        {workers} in {city} voted {day} to end/e a strike/s of {few*} weeks after/ accepting a
        pay/ offer/d [from {company*}|worth {percent*} percent] {state_end};
        A strike/s by {workers} in {city} ended/e {day} after/ {company*} improved its pay/
        offer/d {state_end}""",
        """{city} {workers} {strike} over/ {demand}; {city} {workers} end/e strike/s after/ pay/
        deal/d""",
    ),
    Scene(
        "football",
        """{team} {beat} {team2} {score} {day} [in the {city*} Cup|to move {nth*} in the league]
        {game_end};
        {team2} slumped to a {score} defeat/b against {team} {day} , their {nth*} of the season
        {game_end};
        A [late|superb|long-range] goal from {person} gave/g {team} a {score} win/ over/ {team2}
        {day} {game_end};
        {team} and {team2} drew/d {draw} {day} in a match that {team~} had to win {game_end}""",
        """{team} {beat} {team2} {score}; {team} beat/b {team2} {score}; {person} gives/g {team}
        {score} win/ over/ {team2}; {team} , {team2} draw/d {draw}""",
    ),
    Scene(
        "football",
        """{team} {player} {person} will/t miss/m the rest/ of/ the season/ with/ {injury} , the
        club said {day} ({club_tail});
        {team} have signed/s {player} {person} from/ {team2} for/ {fee} , the clubs said {day}
        ({club_tail});
        {injury} will/t keep/k {team} {player} {person} out/ for/ {few} weeks/ , coach {person*}
        said {day} ({club_tail})""",
        """{team} {player} {person} to/t miss/m rest/ of/ season/ with/ {injury}; {team} sign/s
        {person} from/ {team2} for/ {fee}; {team} {player} {person} out/ for/ {few} weeks/ with
        {injury}""",
    ),
    Scene(
        "sport",
        """{seed*} {person} {beats} {person2} {sets*} {day} to/ reach/ the {round} of the {city}
        Open/ {sport_end};
        {person2} , the {seed*} , was beaten/b {sets*} {day} by {person} in/ the {round} of the
        {city} Open/ , weeks after winning the {city*} Open {sport_end};
        {country.adj*} rider {person} won/w the {stage} stage/ of/ the Tour/ of {country} {day}
        [in driving rain|by {few*} seconds|after a long climb] (, with {person*} second and
        {person*} third)""",
        """{person} {beats} {person2} to/ reach/ {city} Open/ {round}; {person} beats/b {person2}
        in/ {city} Open/ {round}; {person} wins/w {stage} stage/ of/ {country} Tour/""",
    ),
    Scene(
        "obituaries",
        """{person} , the {country.adj*} {job} {fame*} , died/d {day} in {city*} at/ the age of
        {age} {obit_end};
        {job} {person} , {fame*} , has died/d in {city*} aged/at {age} {obit_end}""",
        """{job} {person} dies/d at/ {age}; {job} {person} dies/d aged/at {age}""",
    ),
)
