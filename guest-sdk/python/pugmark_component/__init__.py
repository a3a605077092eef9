"""What makes a component of a script: run once when it is built, and then in each step.

No part of the SDK: scripts do not import it.
"""
