"""What a person reads once a service is ready."""

import re

from toolserver.cli.greeting import greet


def test_a_person_reads_every_address_that_there_is_and_what_to_try(capsys):
    greet({"base_url": "http://a", "metrics_url": None, "credits": 500}, "try {}".format)
    out = capsys.readouterr().out
    assert re.findall(r"^  (.*?)  +(\S+)$", out, re.MULTILINE) == [("home page", "http://a"), ("its credits", "500")]
    assert out.endswith("\ntry http://a\n")
