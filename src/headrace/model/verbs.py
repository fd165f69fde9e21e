"""Verbs that a declared thing does not have: told like every other mistake, with who has them."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from headrace.base.errors import NoSuchVerb
from headrace.base.where import here

NOT_OF_STREAMS = {
    "group_by": '.key_by("...").window(...).agg(...): its rows never end, so they are grouped in windows',
    "agg": '.window(hr.tumbling("5 min"), lateness="1 min").agg(...)',
    "top": '.window(hr.tumbling("5 min"), lateness="1 min").top(...)',
    "filter": '.where("...")',
    "pattern": 'app.pattern("name", key="...").first("step", stream)',
    "matches": "a pattern has it: app.pattern(...)",
    "timeouts": "a pattern has it: app.pattern(...)",
    "features": 'app.features("card", key="...", source=stream, ttl="30 d")',
    "vectors": "features have it: app.features(...)",
}
NOT_OF_TABLES = {
    "agg": '.group_by("...").agg(...)',
    "key_by": '.group_by("...").agg(...), or .changes().key_by(...) for its changes',
    "enrich": ".join(other, on=...): two tables are a view",
    "filter": '.where("...")',
}
NOT_OF_PATTERNS = {
    "where": "say it in the step: .then(..., where=...)",
    "within": "the pattern has it, and steps have within=",
    "matches": "the pattern has it",
    # as Flink calls them
    "followed_by": ".then(...)",
    "followed_by_any": ".then_any(...)",
    "not_followed_by": ".never(...)",
    "not_next": ".never_next(...)",
    "one_or_more": ".or_more()",
    "times_or_more": ".times(n).or_more()",
    "allow_combinations": ".any()",
}


class Verbs:
    """Of a declared thing. `KIND`: what it is; `ELSEWHERE`: what to say instead of verbs it is often asked for;
    `OF_STREAMS`: what to say instead of any verb of streams, VERB standing for it."""

    __slots__ = ()
    KIND: ClassVar[str]
    ELSEWHERE: ClassVar[dict[str, str]] = {}
    OF_STREAMS: ClassVar[str] = ""

    if not TYPE_CHECKING:  # a type checker is to see only the verbs that are there

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):  # Python, IPython and pickle ask for these
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            raise NoSuchVerb(f"{self.KIND} has no .{name}", fix=self._instead(name), where=here())

    def _instead(self, name: str) -> str:
        from headrace.model.stream import Stream

        if name in self.ELSEWHERE:
            return self.ELSEWHERE[name]
        if self.OF_STREAMS and name in dir(Stream):
            return self.OF_STREAMS.replace("VERB", name)
        near = get_close_matches(name, [verb for verb in dir(type(self)) if verb.islower() and verb[0] != "_"], 1)
        return f"did you mean .{near[0]}?" if near else ""


def missing(of: str, name: str, known: Any) -> NoSuchVerb:
    """A name that is not among those that a user gave."""
    near = get_close_matches(name, known, 1)
    return NoSuchVerb(f"{of} has no {name!r}", why=f"there is {', '.join(known)}",
                      fix=f"did you mean .{near[0]}?" if near else "", where=here())  # fmt: skip
