"""Fuller and shorter forms that a reader takes as the same: known people, titles, short forms."""

from functools import cache
from typing import Final

# People whose surname alone names them in the news; none with a surname that others share.
_KNOWN: Final = """
Donald Trump, Joe Biden, Kamala Harris, Barack Obama, Hillary Clinton, Mike Pence, JD Vance, Tim
Walz, Nancy Pelosi, Mitch McConnell, Chuck Schumer, Kevin McCarthy, Ron DeSantis, Nikki Haley,
Vivek Ramaswamy, Bernie Sanders, Marco Rubio, Pete Hegseth, Pam Bondi, Kristi Noem, Tulsi Gabbard,
Gavin Newsom, Greg Abbott, Kathy Hochul, Andrew Cuomo, Zohran Mamdani, Rudy Giuliani, Hakeem
Jeffries, Ted Cruz, Matt Gaetz, George Santos, Antony Blinken, Merrick Garland, Alejandro
Mayorkas, Janet Yellen, Jerome Powell, Anthony Fauci, Jen Psaki, Karoline Leavitt, Vladimir Putin,
Volodymyr Zelensky, Volodymyr Zelenskyy, Volodymyr Zelenskiy, Alexei Navalny, Sergei Lavrov,
Dmitry Medvedev, Benjamin Netanyahu, Recep Erdogan, Emmanuel Macron, Angela Merkel, Olaf Scholz,
Friedrich Merz, Giorgia Meloni, Silvio Berlusconi, Viktor Orban, Boris Johnson, Rishi Sunak, Liz
Truss, Keir Starmer, Tony Blair, Jeremy Corbyn, Nigel Farage, Nicola Sturgeon, Rachel Reeves, Matt
Hancock, Suella Braverman, Narendra Modi, Rahul Gandhi, Arvind Kejriwal, Mamata Banerjee, Shehbaz
Sharif, Shinzo Abe, Fumio Kishida, Anthony Albanese, Peter Dutton, Jacinda Ardern, Justin Trudeau,
Mark Carney, Pierre Poilievre, Javier Milei, Jair Bolsonaro, Nicolas Maduro, Hugo Chavez, Fidel
Castro, Muammar Gaddafi, Bashar Assad, Saddam Hussein, Nelson Mandela, Jacob Zuma, Cyril
Ramaphosa, Robert Mugabe, Elon Musk, Jeff Bezos, Mark Zuckerberg, Bill Gates, Warren Buffett, Sam
Altman, Rupert Murdoch, Tucker Carlson, Joe Rogan, Jimmy Kimmel, Stephen Colbert, Alec Baldwin,
Jeffrey Epstein, Ghislaine Maxwell, Harvey Weinstein, Meghan Markle, Kate Middleton, Taylor Swift,
Travis Kelce, Britney Spears, Justin Bieber, Oprah Winfrey, Johnny Depp, Amber Heard, Lionel
Messi, Cristiano Ronaldo, Kylian Mbappe, Erling Haaland, Mohamed Salah, Marcus Rashford, Pep
Guardiola, Jurgen Klopp, Jose Mourinho, Mikel Arteta, Thomas Tuchel, Gareth Southgate, Lewis
Hamilton, Max Verstappen, Lando Norris, Novak Djokovic, Rafael Nadal, Roger Federer, Carlos
Alcaraz, Emma Raducanu, Naomi Osaka, Tiger Woods, Rory McIlroy, Tom Brady, Patrick Mahomes, Aaron
Rodgers, Virat Kohli, MS Dhoni, Sachin Tendulkar, Shohei Ohtani, Luigi Mangione, George Floyd,
Derek Chauvin, Julian Assange, Edward Snowden, Greta Thunberg
"""

# People whom their first name, or a name that comes first, names.
_BY_ONE_NAME: Final = {
    "elon": {"musk"},
    "meghan": {"markle", "duchess", "sussex"},
    "kanye": {"west"},
    "lebron": {"james"},
    "oprah": {"winfrey"},
    "xi": {"jinping"},
    "jinping": {"xi"},
    "yoon": {"suk", "yeol"},
    "beyonce": {"knowles"},
    "greta": {"thunberg"},
    "britney": {"spears"},
}

# Words that stand before a name, or for an office; they name nobody.
TITLES: Final = frozenset(
    """
    president presidents pres prime minister ministers pm premier chancellor governor gov senator
    sen rep representative congressman congresswoman mayor judge justice chief king queen prince
    princess pope duke duchess lord lady sir dame dr doctor mr mrs ms miss prof professor general
    gen col capt captain sgt lt officer secretary speaker attorney ag ceo cfo coo chairman chair
    director rev reverend father saint st mp mps mla cm vp fm chancellor coach manager dad mum mom
    jr ii iii iv
    """.split()
)

# Short forms: the short one, and words any of which in the lede makes it good.
_SHORT: Final = """
pm: prime minister premier
fm: foreign finance minister
cm: chief minister
vp: vice
ceo: chief executive boss
cfo: chief finance financial
ag: attorney
doj: justice
dhs: homeland
dod: pentagon defense
epa: environmental
fed: federal reserve
feds: federal fbi
fbi: federal agents bureau
gop: republican republicans r
scotus: supreme
potus: president
flotus: lady
dems: democrats democratic democrat
dem: democrat democratic
democrats: democratic democrat
republicans: republican gop
republican: gop r republicans
tory: conservative conservatives tories
tories: conservative conservatives tory
labour: labor
lib: liberal
nhs: health hospital hospitals
mps: parliament commons lawmakers members
mp: parliament commons lawmaker member
lawmakers: congress
covid: coronavirus pandemic virus
coronavirus: covid
utd: united
man: manchester
spurs: tottenham hotspur
barca: barcelona
psg: paris
juve: juventus
wolves: wolverhampton
govt: government
dept: department
co: company
corp: corporation
nyt: york times
wsj: journal
wapo: washington
nyse: stock exchange
ev: electric vehicle
evs: electric vehicles
ai: artificial
tv: television
uk: united kingdom
eu: european
un: united nations
unsc: security council
who: health organization organisation
nato: atlantic alliance
ipo: public offering
gdp: economy growth
sc: supreme
hc: high court
sec: securities exchange
wwii: war
ww2: war
wwi: war
nypd: york police
lapd: angeles police
la: angeles
nyc: york
sf: francisco
dc: washington columbia
philly: philadelphia
vegas: las
xmas: christmas
meta: facebook
facebook: meta
twitter: x
alphabet: google
insta: instagram
mets: metropolitan
met: metropolitan
nba: basketball lakers celtics knicks warriors nuggets thunder heat bucks suns clippers mavericks
nfl: football
mlb: baseball
nhl: hockey
ufc: fighting mma
f1: formula
ipl: premier
bbc: broadcasting
idf: israel israeli
iaf: air
rbi: reserve
rba: reserve
boe: england
boj: japan
ecb: european
imf: monetary
wto: trade
lgbt: gay lgbtq transgender
lgbtq: gay lgbt transgender
catholic: pope church vatican
muslim: islam islamic mosque
jewish: jews antisemitism antisemitic synagogue
christian: church christians
english: england
olympics: olympic games
olympic: olympics
paralympics: paralympic
euros: euro european
euro: european euros
oscar: academy oscars
oscars: academy oscar
grammys: grammy
emmys: emmy
maga: trump
earth: planet
internet: online web
bitcoin: crypto cryptocurrency btc
crypto: bitcoin cryptocurrency cryptocurrencies
btc: bitcoin
q1: quarter
q2: quarter
q3: quarter
q4: quarter
qb: quarterback
rhp: pitcher hander
lhp: pitcher hander
il: injured
mvp: valuable
yanks: yankees
pak: pakistan pakistani
pct: percent
vs: against
usmnt: united us
psu: penn
nws: weather
pentagon: defense defence
cb: cornerback
rb: running
wr: receiver
te: tight
lb: linebacker
tds: touchdowns
td: touchdown
intl: international
democrat: d democrats democratic
street: stocks shares wall profit
wall: stocks shares
cabinet: ministers minister
parliament: lawmakers mps
parl: parliament
congress: lawmakers senate senators
senate: senators senator
senator: sen senate
bucs: buccaneers
avs: avalanche
semitism: jewish jews antisemitism antisemitic
g7: seven g
g20: 20 g twenty
"""


@cache
def known_people() -> dict[str, frozenset[str]]:
    """A name in lower case -> the other names of the one person that it names."""
    others = {name: set(more) for name, more in _BY_ONE_NAME.items()}
    for person in _KNOWN.replace("\n", " ").casefold().split(","):
        *first, surname = person.split()
        others.setdefault(surname, set()).update(first)
    return {name: frozenset(found) for name, found in others.items()}


@cache
def short_forms() -> dict[str, frozenset[str]]:
    """A short form -> words of the lede any of which makes it good."""
    lines = (line.split(":") for line in _SHORT.strip().splitlines())
    return {short.strip(): frozenset(words.split()) for short, words in lines}
