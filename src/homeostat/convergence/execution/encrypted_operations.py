"""Operations with secret arguments, which are decrypted for the call of the cloud only, and kept out of its answers."""

from collections.abc import Callable, Sequence
from functools import partial

from homeostat.clouds.counting import one_each
from homeostat.clouds.port import Answer, Cloud, Operation
from homeostat.desired.redaction import redacted
from homeostat.model.errors import HomeostatError, Terminal
from homeostat.model.observed import Observation
from homeostat.model.plan import DELETE_WITH_PARTS, DeleteWithParts, Operate, Step, Verb
from homeostat.store.encryption.encrypted_arguments import opened, secrets_of
from homeostat.store.encryption.encrypted_cells import NO_KEYS, Keyring, Unreadable
from homeostat.templates import HIDDEN

Keys = Callable[[], Keyring]


def no_keys() -> Keyring:
    """Return the keyring of a database without keys."""
    return NO_KEYS


def operate(cloud: Cloud, kind: str, steps: Sequence[Step], keys: Keyring) -> Sequence[Answer]:
    """Carry out operations, and return an answer for each step."""
    requests = [_operation(step, keys) for step in steps]
    operations = [operation for operation, _ in requests if isinstance(operation, Operation)]
    all_secrets = [text for _, secrets in requests for text in secrets]
    try:
        answers = iter(one_each(cloud, Verb.OPERATE, kind, len(operations), cloud.operate(kind, operations)))
    except Exception as error:
        hidden_error = redacted(error, partial(_without, hidden=all_secrets))
        if hidden_error is error:
            raise
        raise hidden_error from None
    return [
        _answer(next(answers), secrets) if isinstance(operation, Operation) else operation
        for operation, secrets in requests
    ]


def _operation(step: Step, keys: Keyring) -> tuple[Operation | Terminal, list[str]]:
    """Return the operation of a step, with its secrets; an error if they cannot be decrypted."""
    act = step.act
    if isinstance(act, DeleteWithParts):
        return Operation(step.row.handle, DELETE_WITH_PARTS, {"parts": act.parts}), []
    assert isinstance(act, Operate)
    try:
        arguments = opened(keys, act.arguments)
    except Unreadable as error:
        return Terminal(str(error)), []
    return Operation(step.row.handle, act.operation, arguments), secrets_of(act.arguments, arguments)


def _answer(answer: Answer, secrets: Sequence[str]) -> Answer:
    if not secrets or not isinstance(answer, HomeostatError):
        return answer
    hidden_answer = redacted(answer, partial(_without, hidden=secrets))
    assert isinstance(hidden_answer, Observation | HomeostatError)
    return hidden_answer


def _without(text: str, hidden: Sequence[str]) -> str:
    for secret in hidden:
        text = text.replace(secret, HIDDEN)
    return text
