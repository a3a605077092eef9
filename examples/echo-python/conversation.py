"""Books a table in a short conversation: asks, pauses for an answer, and goes on when it is there.

    pugmark run --start -- python conversation.py    # asks for the name, then pauses
    pugmark push <<<'{"kind":"answer","text":"Ada"}'
    pugmark run -- python conversation.py            # asks for the time, and so on

Each step folds the whole log, so the process may end between any two questions.
"""

import pugmark

QUESTIONS = [
    ("name", "What name is the table for?"),
    ("time", "When will you come?"),
    ("guests", "How many will you be?"),
]

asked = 0
answers = {}
booked = False

for event in pugmark.read():
    match event.decode_json():
        case {"kind": "question"}:
            asked += 1
        case {"kind": "answer", "text": text} if len(answers) < asked:
            answers[QUESTIONS[len(answers)][0]] = text
        case {"kind": "booking"}:
            booked = True

if booked:
    pugmark.pause("the table is booked")
elif len(answers) < asked:
    pugmark.pause("waiting for an answer")
elif asked < len(QUESTIONS):
    about, text = QUESTIONS[asked]
    pugmark.write({"kind": "question", "about": about, "text": text})
else:
    pugmark.write({"kind": "booking", **answers})
