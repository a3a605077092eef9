"""Reads sources for a question, takes notes, and writes a brief that somebody approves.

    pugmark start
    pugmark push <<<'{"kind":"task","question":"Why do object stores suit logs?"}'
    pugmark push paper.md diagram.png          # sources: text, or pictures
    pugmark run -- python agent.py             # or: pugmark build agent.py && pugmark run -- agent.wasm
    pugmark push <<<'{"kind":"review","approve":false,"remark":"two quotes a source"}'
    pugmark run -- python agent.py

Each step does one piece of work and appends what came of it; what is left to do follows from the log
alone. So a run may end anywhere, the session can be forked at any step to try another source, and the
same file runs as a subprocess and as a component. No model is called: what a model would do here, a
few rules do, so that the example costs nothing.
"""

import hashlib
import json
import re
import struct
from dataclasses import dataclass, field

import pugmark

STOP_WORDS = frozenset(
    "a an and are as at be by do does for from how in is it of on or that the this to what when "
    "where which who why with".split()
)

# Fewer sources than this, and the agent waits before it begins: some may be on their way.
ENOUGH_SOURCES = 2
WAIT_SECONDS = 0.25

PNG = b"\x89PNG\r\n\x1a\n"


@dataclass
class Source:
    """Something to read."""

    name: str
    body: bytes
    media_type: str

    @property
    def is_picture(self):
        return self.body.startswith(PNG)

    @property
    def digest(self):
        return hashlib.sha256(self.body).hexdigest()


@dataclass
class Work:
    """What the log comes to."""

    question: str = ""
    terms: list = field(default_factory=list)
    sources: dict = field(default_factory=dict)
    notes: dict = field(default_factory=dict)
    indexed: bool = False
    waited: bool = False
    briefs: int = 0
    reviews: list = field(default_factory=list)

    @property
    def unread(self):
        return [source for name, source in self.sources.items() if name not in self.notes]

    @property
    def quotes_a_source(self):
        """As many as a reviewer asked for."""
        numbers = {"one": 1, "two": 2, "three": 3}
        for review in reversed(self.reviews):
            for word, number in numbers.items():
                if word in review.get("remark", "").lower():
                    return number
        return 1

    @property
    def approved(self):
        return bool(self.reviews) and self.reviews[-1].get("approve") is True


def read_log():
    """Folds the log into what there is to know."""
    work = Work()
    for event in pugmark.events():
        match event:
            case pugmark.WakeEvent():
                work.waited = True
            case pugmark.PushEvent(object=entry):
                fold(work, entry)
    return work


def fold(work, entry):
    role = entry.metadata().get("role")
    if role is not None:
        work.indexed = work.indexed or role == "index"
        work.briefs += role == "brief"
    elif entry.content_type() != "application/json":
        if entry.name():
            work.sources[entry.name()] = Source(entry.name(), entry.body(), entry.content_type())
    else:
        match entry.decode_json():
            case {"kind": "task", "question": question}:
                work.question = question
            case {"kind": "plan", "terms": terms}:
                work.terms = terms
            case {"kind": "note", "source": name} as note:
                work.notes[name] = note
            case {"kind": "review"} as review:
                work.reviews.append(review)


def plan(question):
    """The words to look for, each once, in the order of the question."""
    words = re.findall(r"[a-z]+", question.lower())
    return list(dict.fromkeys(word.rstrip("s") for word in words if word not in STOP_WORDS))


def sentences(text):
    for part in re.split(r"(?<=[.!?])\s+", re.sub(r"[#*_`>]", "", text)):
        if part.strip():
            yield " ".join(part.split())


def score(sentence, terms):
    words = [word.rstrip("s") for word in re.findall(r"[a-z]+", sentence.lower())]
    return sum(words.count(term) for term in terms)


def read_text(source, terms):
    """A note on a text: its sentences that say most, best first."""
    text = source.body.decode("utf-8", "replace")
    ranked = sorted(sentences(text), key=lambda sentence: (-score(sentence, terms), sentence))
    return {"quotes": [sentence for sentence in ranked if score(sentence, terms)][:3]}


def read_picture(source):
    """A note on a picture: how large it is."""
    width, height = struct.unpack(">II", source.body[16:24])
    return {"picture": {"width": width, "height": height}}


def take_note(source, terms):
    note = read_picture(source) if source.is_picture else read_text(source, terms)
    pugmark.write_json(
        {"kind": "note", "source": source.name, "sha256": source.digest, **note},
        name=f"notes/{source.name}",
        metadata={"bytes": str(len(source.body))},
    )


def write_index(work):
    """A table of which source has which term how often: four bytes a cell, row by row."""
    rows = b"".join(
        struct.pack(
            f">{len(work.terms)}I",
            *(source.body.lower().count(term.encode()) for term in work.terms),
        )
        for source in work.sources.values()
    )
    head = struct.pack(">4sII", b"IDX1", len(work.sources), len(work.terms))
    pugmark.write_bytes(head + rows, name="index.bin", metadata={"role": "index"})


def write_brief(work):
    """The brief, newest version last; each keeps what the one before it said below."""
    lines = [f"# {work.question}", ""]
    for name, note in work.notes.items():
        lines.append(f"## {name}")
        for quote in note.get("quotes", [])[: work.quotes_a_source]:
            lines.append(f"- {quote}")
        if picture := note.get("picture"):
            lines.append(f"- a picture of {picture['width']} × {picture['height']} points")
        lines.append("")
    text = "\n".join(lines)
    with pugmark.open("brief.md", "text/markdown", metadata={"role": "brief"}) as file:
        before = file.read()
        file.seek(0)
        file.truncate()
        file.write(text.encode())
        if before:
            file.write(b"\n---\n\n" + before)


def main():
    work = read_log()
    if not work.question:
        pugmark.pause("push a task first")
    elif not work.terms:
        pugmark.write({"kind": "plan", "terms": plan(work.question)}, name="plan")
    elif len(work.sources) < ENOUGH_SOURCES and not work.waited:
        pugmark.sleep(WAIT_SECONDS, reason="waiting for sources")
    elif not work.sources:
        pugmark.pause("push at least one source")
    elif work.unread:
        print("reading", work.unread[0].name)
        take_note(work.unread[0], work.terms)
    elif not work.indexed:
        write_index(work)
    elif work.approved:
        said = json.dumps(pugmark.load_json("plan"), sort_keys=True)
        text = f"approved after {work.briefs} briefs: {said}"
        pugmark.write_text(text, name="result", metadata={"role": "result"})
        pugmark.pause("done")
    elif work.briefs <= len(work.reviews):
        write_brief(work)
    else:
        pugmark.pause("please review brief.md")


if __name__ == "__main__":
    main()
