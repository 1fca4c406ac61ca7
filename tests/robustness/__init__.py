"""What is tried against robustness, and how often: processes, kills and damage on one cache.

``python tests/robustness`` runs it and prints the table of ``docs/conformance.md``; ``test_robustness.py`` runs a little of each.
"""
