"""Rules of what programs name and number, as the server has them: what breaks one is refused where it is written."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

_TYPE: Final = re.compile(r"[a-z][a-zA-Z0-9_-]*(?:\.[a-z][a-zA-Z0-9_-]*)*", re.ASCII)
_QUEUE: Final = re.compile(r"[a-z0-9][a-z0-9.\-]*", re.ASCII)
_LIMIT_KEY: Final = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._:-]*", re.ASCII)
_NAMESPACE: Final = re.compile(r"[a-z][a-z0-9-]{0,31}", re.ASCII)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_LONGEST: Final = 255
_MOST_TEXTS: Final = 100
MOST_QUEUES: Final = 100
"""The most queues that the server lets a fetch name, and a worker of itself."""
_MOST_TYPES: Final = 1_000


def job_type(name: Any) -> str:
    """Return the name of a job type. Raises ValueError for what isn't one."""
    return _matching(
        name,
        _TYPE,
        "a job type is one or more words with dots between them, such as email.send; each begins with a lower-case letter and "
        "goes on with letters, digits, - and _",
    )


def queue_name(name: Any) -> str:
    """Return the name of a queue. Raises ValueError for what isn't one."""
    return _matching(name, _QUEUE, "a queue's name has lower-case letters, digits, - and ., and begins with a letter or digit")


def is_queue_name(name: str) -> bool:
    """Return whether a queue may have that name."""
    return len(name) <= _LONGEST and _QUEUE.fullmatch(name) is not None


def namespace(name: Any) -> str:
    """Return the namespace of a system in NATS. Raises ValueError for what isn't one."""
    return _matching(name, _NAMESPACE, "a namespace has lower-case letters, digits and -, and begins with a letter", 32)


def limit_key(key: Any) -> str:
    """Return the key of a rate limit. Raises ValueError for what isn't one."""
    return _matching(key, _LIMIT_KEY, "a rate limit's key has letters, digits and ._:-, and begins with a letter or digit")


def short_text(text: Any, what: str) -> str:
    """Return a text of 1 to 255 printable characters. Raises ValueError for another one."""
    if not isinstance(text, str) or not 0 < len(text) <= _LONGEST or _CONTROL.search(text):
        raise ValueError(f"{what} is a text of 1 to {_LONGEST} printable characters, not {shown(text)}")
    return text


def short_texts(texts: Any, what: str) -> list[str]:
    """Return up to 100 such texts. Raises ValueError for others, and for a text in the place of a list of them."""
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise ValueError(f"{what} are a list of texts, not {shown(texts)}")  # noqa: TRY004  # it breaks a rule
    found = [short_text(text, f"one of {what}") for text in texts]
    if len(found) > _MOST_TEXTS:
        raise ValueError(f"{what} are up to {_MOST_TEXTS}, not {len(found)}")
    return found


def among(words: Iterable[Any], known: Sequence[str], what: str) -> list[str]:
    """Return the words. Raises ValueError for one that isn't known, and for none at all."""
    found = [words] if isinstance(words, str) else list(words)
    if not found or isinstance(words, str) or any(word not in known for word in found):
        raise ValueError(f"{what} are some of {', '.join(known)}, in a list, not {shown(words)}")
    return found


def one_of(word: Any, known: Sequence[str], what: str) -> str:
    """Return the word. Raises ValueError for one that isn't known."""
    if not isinstance(word, str) or word not in known:
        close = difflib.get_close_matches(word, known, 1) if isinstance(word, str) else []
        meant = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"{what} is one of {', '.join(known)}, not {shown(word)}{meant}")
    return word


def yes_or_no(value: Any, what: str) -> bool:
    """Return the value. Raises TypeError for another than True and False."""
    if not isinstance(value, bool):
        raise TypeError(f"{what} is True or False, not {shown(value)}")
    return value


def within(number: Any, least: float, most: float, what: str) -> Any:
    """Return the number. Raises ValueError for what isn't one from `least` to `most`."""
    whole = isinstance(least, int)
    fits = isinstance(number, int if whole else (int, float)) and not isinstance(number, bool) and math.isfinite(number)
    if not fits or not least <= number <= most:
        kind = "a whole number" if whole else "a number"
        raise ValueError(f"{what} is {kind} from {least:,} to {most:,}, not {shown(number)}")
    return number


def worked_queues(queues: Sequence[str]) -> list[str]:
    """Return the queues that one worker takes jobs from, each once. Raises ValueError for what isn't a queue's name."""
    if isinstance(queues, str):
        raise ValueError(f"queues are a list of names, not {shown(queues)}")  # noqa: TRY004  # as above
    return list(dict.fromkeys(queue_name(name) for name in queues))


def check_worked_types(types: Collection[str]) -> None:
    """Raise ValueError for more job types than one worker runs."""
    if len(types) > _MOST_TYPES:
        raise ValueError(
            f"a worker runs up to {_MOST_TYPES:,} job types, not {len(types):,}: give the others an App of their own"
        )


def _matching(name: Any, form: re.Pattern[str], rule: str, longest: int = _LONGEST) -> str:
    if isinstance(name, str) and len(name) <= longest and form.fullmatch(name):
        return name
    raise ValueError(f"{rule}, up to {longest} characters; not {shown(name)}")


def shown(value: Any) -> str:
    """Return a value for a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
