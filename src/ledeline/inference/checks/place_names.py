"""Countries, their people, states and large cities: which word stands for which place."""

from collections.abc import Iterator
from functools import cache
from typing import Final

# A place and all words for it or its people; behind the bar what lies in it or speaks for it.
_COUNTRIES: Final = """
us usa america american americans states murica stateside|
us| washington pentagon capitol biden trump obama nasa fda
us| cdc fbi republican republicans democrats gop california texas florida
uk britain british briton britons brits brit kingdom gb|
uk| england english scotland scottish wales welsh london ulster downing
uk| westminster whitehall
england english| london manchester liverpool birmingham leeds bristol newcastle yorkshire kent essex
scotland scottish scots scot| glasgow edinburgh aberdeen dundee holyrood
wales welsh| cardiff swansea
ireland irish| dublin belfast cork
eu europe european europeans| brussels uefa
russia russian russians| moscow kremlin putin petersburg
ukraine ukrainian ukrainians| kyiv kiev kharkiv odesa
china chinese| beijing shanghai wuhan xinjiang
taiwan taiwanese| taipei
japan japanese| tokyo osaka nikkei
korea korean koreans| seoul pyongyang
india indian indians bharat| delhi mumbai bengaluru bangalore kolkata chennai hyderabad ahmedabad
india| pune lucknow rajasthan gujarat maharashtra kerala karnataka punjab
india| bihar assam rupee lok bollywood
pakistan pakistani pakistanis| islamabad karachi lahore rawalpindi peshawar
bangladesh bangladeshi| dhaka
lanka lankan| colombo
nepal nepali nepalese| kathmandu
afghanistan afghan afghans| kabul kandahar taliban
iran iranian iranians| tehran
iraq iraqi iraqis| baghdad mosul
israel israeli israelis| jerusalem aviv knesset netanyahu idf
palestine palestinian palestinians| gaza rafah ramallah
gaza gazan gazans| rafah khan
lebanon lebanese| beirut
syria syrian syrians| damascus aleppo assad
jordan jordanian| amman
egypt egyptian egyptians| cairo
saudi arabia saudis arabian| riyadh jeddah aramco
uae emirates emirati| dubai dhabi
qatar qatari| doha
yemen yemeni yemenis| sanaa houthi houthis
kuwait kuwaiti|
oman omani| muscat
bahrain bahraini| manama
turkey turkish turks turkiye| ankara istanbul erdogan
germany german germans| berlin munich frankfurt hamburg
france french| paris lyon marseille macron
italy italian italians| rome milan venice turin naples
spain spanish spaniard| madrid barcelona seville
portugal portuguese| lisbon porto
greece greek greeks| athens
cyprus cypriot| nicosia
netherlands dutch holland| amsterdam rotterdam hague
belgium belgian belgians| antwerp
switzerland swiss| zurich geneva
austria austrian austrians| vienna
poland polish pole poles| warsaw
hungary hungarian hungarians| budapest orban
czech czechia| prague
slovakia slovak|
romania romanian| bucharest
bulgaria bulgarian| sofia
serbia serbian serb serbs| belgrade
croatia croatian| zagreb
kosovo kosovar| pristina
albania albanian|
sweden swedish swedes| stockholm
norway norwegian norwegians| oslo
denmark danish danes| copenhagen
finland finnish finns| helsinki
iceland icelandic| reykjavik
greenland greenlandic| nuuk
lithuania lithuanian| vilnius
latvia latvian| riga
estonia estonian| tallinn
belarus belarusian| minsk
georgia georgian| tbilisi atlanta
armenia armenian|
azerbaijan azerbaijani| baku
kazakhstan kazakh|
canada canadian canadians| ottawa toronto vancouver montreal quebec ontario alberta
mexico mexican mexicans|
cuba cuban cubans| havana
haiti haitian haitians|
jamaica jamaican|
venezuela venezuelan venezuelans| caracas maduro
colombia colombian colombians| bogota
brazil brazilian brazilians| rio brasilia bolsonaro lula petrobras
argentina argentine argentinian argentines| buenos
chile chilean| santiago
peru peruvian| lima
ecuador ecuadorian| quito
bolivia bolivian|
uruguay uruguayan|
paraguay paraguayan|
panama panamanian|
salvador salvadoran|
guatemala guatemalan|
honduras honduran|
nicaragua nicaraguan|
australia australian australians aussie aussies oz|
australia| sydney melbourne brisbane perth adelaide canberra queensland victoria
australia| nsw
zealand kiwi kiwis nz zealander zealanders| auckland wellington
fiji fijian|
indonesia indonesian| jakarta bali
malaysia malaysian| lumpur
singapore singaporean|
philippines philippine filipino filipinos| manila
thailand thai thais| bangkok
vietnam vietnamese| hanoi
myanmar burma burmese| yangon
cambodia cambodian|
hong| kong
nigeria nigerian nigerians| abuja lagos
ghana ghanaian| accra
kenya kenyan kenyans| nairobi
uganda ugandan| kampala
tanzania tanzanian|
rwanda rwandan| kigali
ethiopia ethiopian| tigray ababa
somalia somali somalis| mogadishu
sudan sudanese| khartoum darfur
libya libyan| tripoli
tunisia tunisian|
algeria algerian|
morocco moroccan|
senegal senegalese|
mali malian|
niger|
congo congolese| kinshasa
cameroon cameroonian|
angola angolan|
zambia zambian|
zimbabwe zimbabwean| harare
mozambique mozambican|
malawi malawian|
botswana|
namibia namibian|
liberia liberian|
sierra| leone
gambia gambian|
africa african africans| johannesburg pretoria nigeria nigerian kenya kenyan ghana ethiopia
africa| uganda zimbabwe sudan congo
asia asian asians| china japan india korea indonesia thailand vietnam chinese japanese
mideast| middle
kashmir kashmiri| jammu srinagar
crimea crimean|
kurdistan kurdish kurds kurd|
vatican| pope pontiff
antarctica antarctic|
arctic|
"""
_STATES: Final = """
alabama ala| birmingham
alaska| anchorage
arizona ariz| phoenix tucson
arkansas|
california calif californian californians|
california| angeles francisco diego sacramento oakland hollywood malibu silicon
colorado| denver boulder
connecticut conn|
delaware|
florida fla| miami orlando tampa jacksonville
georgia| atlanta
hawaii| honolulu maui
idaho|
illinois| chicago
indiana| indianapolis
iowa|
kansas| wichita
kentucky ky| louisville
louisiana| orleans
maine|
maryland| baltimore
massachusetts| boston harvard
michigan mich| detroit
minnesota minn| minneapolis
mississippi|
missouri|
montana|
nebraska| omaha
nevada nev| vegas reno
hampshire nh|
jersey nj|
york ny nyc yorker yorkers| manhattan brooklyn bronx queens
carolina| charlotte
dakota|
ohio| cleveland cincinnati columbus
oklahoma okla| tulsa
oregon| portland
pennsylvania| philadelphia pittsburgh
tennessee tenn| nashville memphis
texas texan texans tex| houston dallas austin antonio uvalde
utah| salt
vermont|
virginia va| richmond
wisconsin wis| milwaukee
wyoming|
"""
_CITIES: Final = """
london manchester liverpool birmingham leeds bristol newcastle sheffield nottingham leicester
glasgow edinburgh cardiff belfast dublin paris berlin munich frankfurt hamburg rome milan madrid
barcelona lisbon athens amsterdam brussels geneva zurich vienna warsaw budapest prague stockholm
oslo copenhagen helsinki moscow kyiv istanbul ankara jerusalem beirut damascus cairo tehran baghdad
kabul dubai doha riyadh delhi mumbai bengaluru kolkata chennai hyderabad karachi lahore islamabad
dhaka beijing shanghai wuhan taipei tokyo seoul pyongyang bangkok hanoi jakarta manila sydney
melbourne brisbane perth adelaide canberra auckland wellington toronto ottawa montreal vancouver
chicago boston miami houston dallas denver seattle philadelphia phoenix detroit atlanta baltimore
minneapolis milwaukee cleveland pittsburgh nashville memphis orlando tampa portland angeles
francisco diego vegas orleans nairobi lagos abuja johannesburg pretoria harare accra kampala
kinshasa tripoli khartoum queensland ontario quebec alberta maharashtra gujarat rajasthan punjab
kerala karnataka bihar assam telangana haryana odisha yorkshire kent essex cornwall devon surrey
manhattan brooklyn hollywood kremlin washington
"""


# Cities, and teams that readers know to be theirs.
_TEAMS: Final = """
manchester| man
los angeles| lakers clippers dodgers rams chargers angels galaxy
york| yankees mets giants jets knicks rangers islanders
jersey| devils
brooklyn| nets
boston| celtics bruins
england| patriots
philadelphia| eagles phillies sixers flyers 76ers
pittsburgh| steelers pirates penguins
baltimore| ravens orioles
cleveland| browns cavaliers guardians
cincinnati| bengals reds
detroit| lions tigers pistons
chicago| bears cubs bulls blackhawks
green bay| packers
minnesota| vikings twins timberwolves
milwaukee| bucks brewers
kansas city| chiefs royals
dallas| cowboys mavericks stars
houston| texans astros rockets
antonio| spurs
orleans| saints pelicans
atlanta| falcons braves hawks
carolina| panthers hurricanes
charlotte| hornets
tampa bay| buccaneers rays lightning
miami| dolphins heat marlins
jacksonville| jaguars
orlando| magic
tennessee| titans
memphis| grizzlies
indianapolis| colts
indiana| pacers
buffalo| bills sabres
washington| commanders nationals wizards capitals
toronto| raptors blue maple
denver| broncos nuggets
colorado| rockies avalanche
arizona| cardinals diamondbacks
phoenix| suns
utah| jazz
vegas| raiders knights
golden| warriors
francisco| giants 49ers
diego| padres
seattle| seahawks mariners kraken
portland| blazers
oklahoma| thunder
sacramento| kings
"""


class _Atlas:
    """The words of places."""

    def __init__(self) -> None:
        self.names: dict[str, set[str]] = {}  # word -> places that it means
        self.within: dict[str, set[str]] = {}  # word -> places that it means or lies in
        self.known: set[str] = set(_CITIES.split())
        for line in _lines():
            same, _, inside = line.partition("|")
            place, *_ = forms = same.split()
            for word in forms:
                self.names.setdefault(word, set()).add(place)
                self.within.setdefault(word, set()).add(place)
            for word in inside.split():
                self.within.setdefault(word, set()).add(place)
            self.known.update(forms)
        self.known -= set("states los bay green city golden hong sierra".split())


def _lines() -> Iterator[str]:
    for table in (_COUNTRIES, _STATES):
        yield from table.strip().splitlines()
    for line in _TEAMS.strip().splitlines():  # each word of a city is a line of its own
        city, _, teams = line.partition("|")
        yield from (f"{word}| {teams}" for word in city.split())


@cache
def _atlas() -> _Atlas:
    return _Atlas()


def is_place(low: str) -> bool:
    """Whether the word means a country, its people, a state or a large city."""
    return low in _atlas().known


def places_meant(low: str) -> set[str]:
    """The countries and states that the word means."""
    return _atlas().names.get(low, set())


def places_around(lows: set[str]) -> set[str]:
    """The countries and states that some words mean, or that lie around what they mean."""
    within = _atlas().within
    return {place for low in lows & within.keys() for place in within[low]}
