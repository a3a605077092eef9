"""Handlers that the tests of RPC mode and of HTTP handlers serve with the public SDK."""

PRELUDE = """
import hashlib, json, os, sys, threading, time
import pugmark
from pugmark import http, protoipc
"""

SERVE = """
http.serve(http.WSGIPugmark(handle))
"""


def program(home, code, name="server.py"):
    """A program that serves the function `handle(session)` of `code`."""
    return ["python", home.script(PRELUDE + code + SERVE, name)]
