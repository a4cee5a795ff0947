from rest_bridge.routes import PathTemplates

TEMPLATES = PathTemplates(["/a/{id}", "/a/{id}/b", "/a", "/x.y/{one}/{two}"])


def test_a_path_that_fits_a_template_is_looked_up_by_it_with_its_arguments():
    assert TEMPLATES.match("/a/1") == ("/a/{id}", {"id": "1"})
    assert TEMPLATES.match("/a/1/b") == ("/a/{id}/b", {"id": "1"})
    assert TEMPLATES.match("/x.y/1/2") == ("/x.y/{one}/{two}", {"one": "1", "two": "2"})


def test_every_other_path_stands_for_itself():
    for path in ("/a", "/a/", "/a/1/c", "/xzy/1/2", "/a//b", "/a/{id}/c", "/"):
        assert TEMPLATES.match(path) == (path, {})


def test_an_argument_in_a_path_is_decoded_and_never_empty_or_of_two_parts():
    assert TEMPLATES.match("/a/1%202%2Fb") == ("/a/{id}", {"id": "1 2/b"})
    assert TEMPLATES.match("/x.y/%61/{one}").arguments == {"one": "a", "two": "{one}"}
    assert TEMPLATES.match("/x.y//2") == ("/x.y//2", {})
    assert TEMPLATES.match("/x.y/1") == ("/x.y/1", {})
