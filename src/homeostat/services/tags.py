"""Validation of stack tags, the same for all ways to set them."""

TAG_MAX = 80
TAGS_MAX = 100
SHOWN_MAX = 40
"""Characters of an overlong tag that an error message shows."""


def check_tags(tags: list[str]) -> list[str]:
    """Return the tags if they are valid. Raise ValueError naming the invalid one, shortened if it is too long."""
    if len(tags) > TAGS_MAX:
        raise ValueError(f"there are {len(tags)}, more than {TAGS_MAX}")
    for tag in tags:
        if len(tag) > TAG_MAX:
            raise ValueError(f"the tag {tag[:SHOWN_MAX]}… is longer than {TAG_MAX} characters: it has {len(tag)}")
        if "," in tag:
            raise ValueError(f"the tag {tag} holds a comma")
    return tags
