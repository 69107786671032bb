"""Operations whose arguments hold secrets: opened for the call of the cloud alone, and kept out of its answers."""

from collections.abc import Callable, Sequence
from functools import partial

from homeostat.clouds.counting import one_each
from homeostat.clouds.port import Answer, Cloud, Operation
from homeostat.desired.redaction import redacted
from homeostat.model.errors import HomeostatError, Terminal
from homeostat.model.observed import Observation
from homeostat.model.plan import Step, Verb
from homeostat.store.encryption.encrypted_arguments import opened, secrets_of
from homeostat.store.encryption.encrypted_cells import NO_KEYS, Keyring, Unreadable
from homeostat.templates import HIDDEN

Keys = Callable[[], Keyring]


def no_keys() -> Keyring:
    """Return the keys of a database without any."""
    return NO_KEYS


def operate(cloud: Cloud, kind: str, steps: Sequence[Step], keys: Keyring) -> Sequence[Answer]:
    """Carry out operations, and return an answer for each step."""
    found = [_operation(step, keys) for step in steps]
    operations = [each for each, _ in found if isinstance(each, Operation)]
    every = [text for _, secrets in found for text in secrets]
    try:
        answers = iter(one_each(cloud, Verb.OPERATE, kind, len(operations), cloud.operate(kind, operations)))
    except Exception as error:
        shown = redacted(error, partial(_without, hidden=every))
        if shown is error:
            raise
        raise shown from None
    return [
        _answer(next(answers), secrets) if isinstance(operation, Operation) else operation
        for operation, secrets in found
    ]


def _operation(step: Step, keys: Keyring) -> tuple[Operation | Terminal, list[str]]:
    """Return the operation of a step, with its secrets; an error where they cannot be read."""
    try:
        arguments = opened(keys, step.arguments)
    except Unreadable as error:
        return Terminal(str(error)), []
    return Operation(step.row.handle, step.operation, arguments), secrets_of(step.arguments, arguments)


def _answer(answer: Answer, secrets: Sequence[str]) -> Answer:
    if not secrets or not isinstance(answer, HomeostatError):
        return answer
    shown = redacted(answer, partial(_without, hidden=secrets))
    assert isinstance(shown, Observation | HomeostatError)
    return shown


def _without(text: str, hidden: Sequence[str]) -> str:
    for each in hidden:
        text = text.replace(each, HIDDEN)
    return text
