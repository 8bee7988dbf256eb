"""Stop words: English words that stand in so many texts that they say nothing about any."""

from typing import Final

_WORDS: Final = """
a about above across after again against all almost along also although always am among an and another any are around
as at be because been before being below between both but by can cannot could did do does doing done down during each
either else enough etc even ever every few for from further get gets got had has have having he her here hers herself
him himself his how however i if in indeed instead into is it its itself just less let like many may me might mine
more most much must my myself neither no nor not of off often on once only onto or other others our ours ourselves out
over own per perhaps please quite rather same shall she should since so some such than that the their theirs them
themselves then there therefore these they this those though through thus to together too toward towards under unless
until up upon us very via was we well were what whatever when whenever where whether which while who whoever whole
whom whose why will with within without would yes yet you your yours yourself yourselves
"""
# What is left of contractions that are split at the apostrophe.
_REMAINDERS: Final = "d don doesn didn isn aren wasn weren hasn haven hadn won wouldn couldn shouldn ll m re s t ve"

ENGLISH: Final = frozenset(f"{_WORDS} {_REMAINDERS}".split())
"""English stop words, lower case."""
