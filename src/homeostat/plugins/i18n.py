"""Texts are not translated; plug-ins mark them all the same."""


def _(text: str) -> str:
    return text


_LI = _LW = _LE = _LC = _
