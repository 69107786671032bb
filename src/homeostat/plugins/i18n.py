"""Markers for translation, which plug-ins use; texts are not translated."""


def _(text: str) -> str:
    return text


_LI = _LW = _LE = _LC = _
