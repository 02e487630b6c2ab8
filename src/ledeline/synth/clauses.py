"""The stock clauses of the synthetic newsroom: what a lede says besides its news.

None of these words goes into a headline. Many repeat on purpose what a headline needs: a verb,
"percent", a number of dead. The notation is that of
:mod:`ledeline.synth.desks`.
"""

CLAUSES = {
    "gloss": """
        In a [surprise|closely watched|long-awaited|rare] [move|step|decision] ,;
        After [weeks|months|years] of [delay|debate|wrangling|speculation] ,;
        For the [second|third|fourth] time in [a year|as many months] ,;
        With a summit in {city*} only weeks away ,;
        Defying [protests|warnings|pressure] from {country*} ,;
        Less than {few*} months after [a public outcry|a similar step in {country*}] ,""",
    "dread": """
        In the worst accident of its kind for {few*} years ,;
        Hours after [officials|engineers] had declared the area safe ,;
        As [night fell|temperatures dropped|fog lifted] ,;
        Barely {few*} weeks after a deadly fire in {city*} ,;
        For the second time in [a year|a month] ,""",
    "voice": """
        officials;
        a government spokesman;
        the state news agency;
        the ministry;
        aides;
        two people familiar with the matter;
        a senior official;
        the {city*} Gazette""",
    "alarm_voice": """
        police;
        rescue officials;
        the fire brigade;
        the interior ministry;
        witnesses;
        state television;
        the governor's office;
        hospital staff;
        emergency services""",
    "says": """
        , {voice*} said;
        , according to {voice*};
        , {person*} , an official in {city*} , told reporters;
        , local media reported;
        , said {person*} , [an aide|a deputy minister|a party official] in {city*}""",
    "alarm_says": """
        , {alarm_voice*} said;
        , according to {alarm_voice*};
        , local media reported;
        , said {person*} , a [police|rescue|hospital] official""",
    "money_event": """
        reported a surprise loss of {money*};
        cut {jobs*} jobs in {city*};
        agreed to buy {company*} for {money*};
        raised its profit forecast by {percent*} percent;
        said profit fell {percent*} percent;
        closed its plant in {city*};
        named {person*} as chief executive;
        lowered its prices by {percent*} percent;
        halted trading in its shares""",
    "money_tail": """
        , {span*} after {company*} {money_event*};
        , as companies across {country*} struggled with [rising costs|weak demand|higher taxes];
        , surprising [economists|analysts|commentators] who had expected [otherwise|a quieter
        week|no such news];
        , although {person*} , an analyst at {company*} , said the effect would be
        [small|limited|short-lived];
        , even as unemployment in {country*} climbed to {inflation*} percent;
        , while the {country.adj*} currency [fell|rose] {percent*} percent against the dollar;
        , in a further sign that the economy of {country*} is [losing|gathering] pace;
        , with trading in {city*} thin [ahead of|after] a public holiday""",
    "state_event": """
        police broke up a protest in {city*};
        {person*} resigned as {minister*} of {country*};
        talks in {city*} ended without agreement;
        opposition parties walked out of a debate;
        a court in {city*} suspended a similar plan;
        {crowd*} people marched through {city*};
        {country*} recalled its ambassador;
        voters in {country*} went to the polls""",
    "state_tail": """
        , {span*} after {state_event*};
        , despite [objections|criticism|threats] from {person*} , leader of the {party*} Party;
        , as thousands of people protested outside [parliament|the town hall|the presidential
        palace];
        , in the most serious [test|crisis] for the government since {year*};
        , a step that [critics|diplomats|analysts] said [would change little|could backfire|was
        long overdue];
        , ending [weeks|months] of [deadlock|rumours|tension];
        , while ministers in {country*} called for [calm|restraint|more time]""",
    "alarm_tail": """
        , in an area where {event*} killed {dead*} people in {year*};
        , {span*} after {event*} killed {dead*} people in {city*};
        , prompting the government to send {crowd*} troops and {few*} helicopters;
        , while heavy rain hampered rescue teams;
        , with hospitals in {city*} struggling to treat the wounded;
        , despite repeated warnings from [engineers|local residents|safety inspectors];
        , and at least {few*} people were missing;
        , as the mayor , {person*} , appealed for [calm|help|blood donors]""",
    "lab_tail": """
        , after {years*} years of [study|field work|tests] in {country*};
        , although other experts said more work was needed;
        , years after a similar claim by a team in {country*} was withdrawn;
        , with money from a foundation in {city*};
        , raising new questions about [evolution|diet|climate|ancient trade];
        , said {person*} of the University of {city*} , who led the work;
        , according to a paper in the {city*} Journal""",
    "game_tail": """
        , in front of {crowd*} spectators;
        , while {team*} drew {draw*} with {team*};
        , with {team*} beating {team*} {score*} in the other match;
        , {span*} after [losing to|a defeat by] {team*};
        , in a match [delayed by rain|played in driving snow|twice interrupted by crowd
        trouble];
        , as coach {person*} marked {few*} years in charge;
        , after {person*} was sent off for a late tackle""",
    "club_tail": """
        , {span*} after [losing to|a defeat by] {team*};
        , as {team~} prepare to face {team*};
        , only {few*} days before a match against {team*};
        , with {player*} {person*} [also doubtful|still recovering from {injury*}];
        , while {team*} are also short of players""",
    "sport_tail": """
        , in front of {crowd*} spectators;
        , while {person*} beat {person*} {sets*} on another court;
        , weeks after losing to {person*} in {city*};
        , despite [a painful knee|a heavy cold|a fall in training];
        , in a contest [delayed by rain|played in fierce heat]""",
    "obit_tail": """
        , the family said in a statement;
        , {span*} after [a fall|a stroke|heart surgery];
        , leaving {few*} children and an unfinished [book|opera|garden];
        , said {person*} , a [friend|former pupil|biographer];
        , only {few*} months after the death of {person*} , a close friend""",
    "money_says": """
        , [local|state] media reported;
        , according to [market data|company documents|two people familiar with the matter];
        , the {city*} Gazette reported;
        , said {person*} , an economist [at {company*}|at the University of {city*}]""",
    "law_tail": """
        , in a case that has [gripped|divided|embarrassed] {country*};
        , {span*} after police in {city*} arrested {dead*} people in a separate inquiry;
        , although {person*} , a defence lawyer , [denied all charges|called the case
        political|accused the police of lying];
        , as relatives of {person*} [wept|protested|waited] outside;
        , {span*} after a similar trial in {city*} collapsed;
        , a decade after {convict*} was jailed for {crime*};
        , according to documents seen by the {city*} Gazette""",
    "weather_tail": """
        , cutting power to {crowd*} homes in {city*};
        , {span*} after a [storm|flood] killed {dead*} people in {country*};
        , as [shops|schools|offices] in {city*} stayed shut;
        , prompting the government to send {crowd*} troops;
        , with more [rain|wind|trouble] expected on {weekday*};
        , in the worst weather to hit the [region|area] since {year*}""",
    "weather_says": """
        , forecasters said;
        , the weather service said;
        , according to [meteorologists|local officials];
        , said {person*} , a forecaster in {city*}""",
    "health_tail": """
        , as [hospitals|clinics] in {city*} ran short of [beds|vaccine|doctors];
        , {span*} after [a similar|another] outbreak killed {dead*} people in {country*};
        , prompting {country*} to [close its border|cancel flights|ban public meetings];
        , although {person*} , a [doctor|virologist] in {city*} , said the worst was over;
        , while schools in {city*} stayed shut""",
    "probe_tail": """
        , sending back [pictures|data|signals] that will take months to study;
        , at a cost of {money*};
        , {span*} after a rival mission from {country*} failed;
        , said {person*} of the {city*} space centre""",
    "money_end": "({money_tail} ({money_tail2})) ({money_says})",
    "money_more": "({money_tail} ({money_tail2}))",
    "state_end": "({state_tail} ({state_tail2})) ({says})",
    "alarm_end": "({alarm_tail} ({alarm_tail2})) {alarm_says}",
    "law_end": "({law_tail} ({law_tail2})) ({says})",
    "weather_end": "({weather_tail} ({weather_tail2})) {weather_says}",
    "health_end": "({health_tail}) ({health_tail2})",
    "probe_end": "({probe_tail}) ({probe_tail2})",
    "lab_end": "({lab_tail}) ({lab_tail2})",
    "sport_end": "({sport_tail}) ({sport_tail2})",
    "obit_end": "({obit_tail}) ({obit_tail2})",
    "game_end": "({game_tail}) ({game_tail2})",
}
