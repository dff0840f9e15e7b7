# SPDX-License-Identifier: Apache-2.0
"""The keys of what commands write with --json, and of what passes between modules as a result: a type for each object.

The text in a key's annotation is its meaning; scripts/make_json_page.py makes the tables of docs/json.md from it. Nothing here does anything
when a program runs. Types whose object is made and read in one room stand there, such as those of `nanet tune`.
"""
