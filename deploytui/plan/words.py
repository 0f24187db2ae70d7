"""The words that synthetic prompts are made of."""

_TEXT = """
time year people way day man thing woman life child world school state family student group country problem hand
part place case week company system program work number night point home water room mother area money story fact
month lot right study book eye job word business issue side kind head house service friend father power hour game
line end member law car city name team minute idea kid body back parent face others level office door health person
art history party result change reason girl moment air teacher force foot boy age policy music market sense nation
plan college effect use class control field role rate heart show leader light voice wife mind price report son view
town road arm value action season tax player record paper space ground form event matter center site project star
table need court oil cost figure street image phone data picture piece land product doctor wall news test movie
north love support step baby type film tree source hair window culture brother energy period course summer plant
term letter choice rule south floor call church risk fire future bank bed ball color stone river green blue white
black small large early young great little long short high low open close cold warm hard easy free full good better
best new old next last first second third left strong clear simple single double whole half quick slow deep wide
public private local human social real true ready able late stay move turn start stop play run walk talk read write
learn think know feel find keep hold follow lead build grow send offer expect allow create include set add pass
sell require return develop reach suggest raise agree receive join break rest sing farm snow rain wind bridge ship
train plane horse bird fish dog cat bread milk sugar salt rice fruit apple gold iron glass wood metal shop store
"""

WORDS = tuple(_TEXT.split())
"""Common English words: most are one token in any vocabulary, at the start of a text and within it."""
