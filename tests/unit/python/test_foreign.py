"""Models of pydantic's, numbers of numpy's and other collections as arguments and results."""

from __future__ import annotations

import subprocess
import sys
import warnings
from array import array
from collections import ChainMap, Counter, UserDict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypedDict, TypeVar
from uuid import UUID

import msgspec
import numpy as np
import numpy.typing as npt
import pydantic
import pytest
from pydantic import BaseModel, ConfigDict, Field, HttpUrl, PositiveInt, RootModel, SecretStr, field_serializer, model_validator

from ojs_nats import App, OjsError
from ojs_nats._arguments import Parameters
from ojs_nats._hooks import ClientHooks
from ojs_nats._plain import encoded, plain
from ojs_nats._requests import template
from ojs_nats._results import Results
from ojs_nats.jobs import JobRequest
from ojs_nats.testing import fake, inline
from ojs_nats.worker._outcome import Unfit, raised
from support.python_samples import context
from support.tables import each

T = TypeVar("T")


class Item(BaseModel):
    sku: str
    count: int = Field(default=1, gt=0)


class Order(BaseModel):
    id: UUID
    day: date
    at: datetime
    price: Decimal
    items: list[Item] = []
    note: str | None = None


class Aliased(BaseModel):
    first_name: str = Field(alias="firstName")


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)

    day: date
    tags: set[str]


class Total(BaseModel):
    model_config = ConfigDict(extra="forbid")

    net: int

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def gross(self) -> int:
        return self.net * 2


class Numbers(RootModel[list[int]]):
    pass


class Page(BaseModel, Generic[T]):
    items: list[T]


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


class Account(BaseModel):
    name: str
    password: SecretStr


class Revealed(Account):
    @field_serializer("password", when_used="json")
    def revealed(self, password: SecretStr) -> str:
        return password.get_secret_value()


class WithoutSecret(BaseModel):
    name: str
    password: SecretStr = Field(default=SecretStr(""), exclude=True)


class Measure(BaseModel):
    value: float


class Ordered(BaseModel):
    low: int
    high: int

    @model_validator(mode="after")
    def ordered(self) -> Ordered:
        if self.low > self.high:
            raise ValueError("low is above high")
        return self


class Unfinished(BaseModel):
    what: Later  # type: ignore[name-defined]  # noqa: F821


@pydantic.dataclasses.dataclass
class Point:
    x: Annotated[int, Field(ge=0)]
    y: float = 0.0


@dataclass
class Parcel:
    item: Item
    weights: list[float]


@dataclass
class Drawing:
    points: list[Point]


class Bag(msgspec.Struct):
    items: list[Item]
    weight: np.float64 = np.float64(0)


class Row(NamedTuple):
    item: Item
    copies: int


class Options(TypedDict):
    item: Item


class Mean(float):
    pass


class Words(Sequence[str]):
    def __getitem__(self, index: Any) -> Any:
        return ["a", "b"][index]

    def __len__(self) -> int:
        return 2


@dataclass
class Held:
    value: Any


ITEM = Item(sku="a", count=2)
ORDER = Order(
    id=UUID(int=1), day=date(2026, 11, 23), at=datetime(2026, 11, 23, 8, tzinfo=UTC), price=Decimal("9.50"), items=[ITEM]
)


# Values that JSON holds


@each(
    ("value", "read"),
    [
        (
            ORDER,
            {
                "id": "00000000-0000-0000-0000-000000000001",
                "day": "2026-11-23",
                "at": "2026-11-23T08:00:00Z",
                "price": "9.50",
                "items": [{"sku": "a", "count": 2}],
                "note": None,
            },
        ),
        ([ITEM, {"b": ITEM}], [{"sku": "a", "count": 2}, {"b": {"sku": "a", "count": 2}}]),
        (Aliased(firstName="Ada"), {"firstName": "Ada"}),
        (Numbers([1, 2]), [1, 2]),
        (Total(net=2), {"net": 2}),
        (Page[Item](items=[ITEM]), {"items": [{"sku": "a", "count": 2}]}),
        (Point(1, 2.5), {"x": 1, "y": 2.5}),
        (Parcel(ITEM, [0.5]), {"item": {"sku": "a", "count": 2}, "weights": [0.5]}),
        (Bag([ITEM]), {"items": [{"sku": "a", "count": 2}], "weight": 0.0}),
        (Row(ITEM, 1), [{"sku": "a", "count": 2}, 1]),
        (HttpUrl("http://example.org/a"), "http://example.org/a"),
        (Revealed(name="a", password=SecretStr("pw")), {"name": "a", "password": "pw"}),
        (WithoutSecret(name="a", password=SecretStr("pw")), {"name": "a"}),
        (Item(sku="**********"), {"sku": "**********", "count": 1}),
        # numpy
        ([np.int64(-3), np.uint64(2**64 - 1), np.int8(1)], [-3, 2**64 - 1, 1]),
        ([np.float32(0.5), np.float16(0.5), np.float64(0.1)], [0.5, 0.5, 0.1]),
        ([np.bool_(True), np.str_("a"), np.bytes_(b"a")], [True, "a", "YQ=="]),
        (np.array([[1, 2], [3, 4]], dtype=np.uint8), [[1, 2], [3, 4]]),
        (np.array([0.5, 1.5]), [0.5, 1.5]),
        (np.array([True, False]), [True, False]),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.array([{"a": np.int64(1)}, None], dtype=object), [{"a": 1}, None]),
        (np.array(5), 5),
        (np.array([]), []),
        (np.ma.masked_array([1, 2], mask=[False, True]), [1, None]),
        ({np.int64(1): 1, np.float32(0.5): 2, np.str_("c"): 3}, {"1": 1, "0.5": 2, "c": 3}),
        (Held(np.int64(1)), {"value": 1}),
        (Held({np.int64(1): np.array([1.5])}), {"value": {"1": [1.5]}}),
        # collections and subclasses
        (deque([1, ITEM]), [1, {"sku": "a", "count": 2}]),
        (array("d", [0.5]), [0.5]),
        (range(3), [0, 1, 2]),
        (Words(), ["a", "b"]),
        ({"a": 1}.keys(), ["a"]),
        ({"a": 1}.values(), [1]),
        ({"a": 1}.items(), [["a", 1]]),
        (UserDict({1: np.int64(2)}), {"1": 2}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (ChainMap({"a": 1}), {"a": 1}),
        (Counter("aa"), {"a": 2}),
        ([Held(Mean(0.5)), Held(deque([Mean(1)]))], [{"value": 0.5}, {"value": [1.0]}]),
    ],
)
def test_what_other_libraries_hold_is_sent(value: Any, read: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plain(value, "it") == read


@each(
    ("value", "error", "said"),
    [
        (Measure(value=float("nan")), ValueError, r"it\['value'\] is nan, which JSON can't hold"),
        ([Point(1, float("inf"))], ValueError, r"it\[0\]\['y'\] is inf"),
        (np.float32("nan"), ValueError, "it is nan"),
        (np.array([1, np.nan]), ValueError, r"it\[1\] is nan"),
        ([Held(np.float64("inf"))], ValueError, r"it\[0\]\['value'\] is inf"),
        (deque([float("nan")]), ValueError, r"it\[0\] is nan"),
        (array("d", [float("nan")]), ValueError, r"it\[0\] is nan"),
        ({np.float32("nan"): 1}, ValueError, "it has the key nan"),
        ({np.int64(1): 1, "1": 2}, ValueError, "it has two keys that JSON writes as '1'"),
        ({np.bool_(True): 1}, TypeError, "it has the key True"),
        ({np.datetime64("2026-11-23"): 1}, TypeError, "it has the key .*datetime64"),
        (np.datetime64("2026-11-23"), TypeError, r"it can't be written as JSON: JSON has nothing like numpy's datetime64\[D\]"),
        (np.array(["2026-11-23"], "M8[ns]"), TypeError, r"nothing like numpy's datetime64\[ns\]: send a text or a datetime"),
        (np.timedelta64(1, "s"), TypeError, "nothing like numpy's timedelta64"),
        ([np.complex128(1)], TypeError, r"it\[0\] can't be .* nothing like numpy's complex128"),
        (np.longdouble(1), TypeError, "more digits than other languages read"),
        (Account(name="a", password=SecretStr("pw")), TypeError, "it has a secret, of which pydantic writes nothing but stars"),
        ([SecretStr("pw")], TypeError, r"it\[0\] can't be .* a secret"),
        (Held(Account(name="a", password=SecretStr("pw"))), TypeError, "a secret"),
        (object(), TypeError, "it can't be written as JSON: Encoding objects of type object is unsupported"),
        ([Path("/tmp")], TypeError, "PosixPath is unsupported"),
    ],
)
def test_what_json_can_t_hold_of_them_is_refused(value: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said) as refused:
        encoded(value, "it")
    assert "pw" not in str(refused.value)


# Hints


def order(one: Order, more: list[Item], by_name: dict[str, Item], maybe: Item | None = None) -> Item | None: ...


def test_models_arrive_as_they_were_pushed() -> None:
    handler = Parameters(order)
    args = (ORDER, [ITEM], {"a": ITEM}, None)
    assert handler.listed(args, {}) == args
    assert handler.listed((ORDER, [], {}), {"maybe": ITEM}) == (ORDER, [], {}, ITEM)
    assert handler.converted(plain(list(args), "args")) == list(args)
    assert handler.returns == Item | None


@each(
    ("hint", "value"),
    [
        (Aliased, Aliased(firstName="Ada")),
        (Strict, Strict(day=date(2026, 11, 23), tags={"a"})),
        (Total, Total(net=2)),
        (Numbers, Numbers([1, 2])),
        (Page[Item], Page[Item](items=[ITEM])),
        (list[Pet], [Cat(kind="cat", lives=9), Dog(kind="dog", name="Rex")]),
        (Cat | Dog | int, Dog(kind="dog", name="Rex")),
        (Revealed, Revealed(name="a", password=SecretStr("pw"))),
        (Point, Point(1, 2.5)),
        (list[Point], [Point(1)]),
        (Parcel, Parcel(ITEM, [0.5])),
        (Drawing, Drawing([Point(1)])),
        (Bag, Bag([ITEM], np.float64(0.5))),
        (Row, Row(ITEM, 1)),
        (Options, {"item": ITEM}),
        (HttpUrl, HttpUrl("http://example.org/a")),
        (PositiveInt, 5),
        (Annotated[int, Field(gt=0, examples=[1])], 5),
        (dict[int, Item], {1: ITEM}),
        (tuple[Item, ...], (ITEM,)),
        (np.int64, np.int64(5)),
        (np.float64, np.float64(0.5)),
        (np.float32 | None, np.float32(0.5)),
        (np.bool_, np.bool_(True)),
        (list[np.str_], [np.str_("a")]),
        (deque[date], deque([date(2026, 11, 23)])),
        (deque, deque([1])),
    ],
)
def test_a_hint_is_filled_with_what_was_sent(hint: Any, value: Any) -> None:
    def handler(one: Any) -> Any:
        return one

    handler.__annotations__ = {"one": hint, "return": hint}
    parameters = Parameters(handler)
    [found] = parameters.converted(plain(list(parameters.listed((value,), {})), "args"))
    assert (found, type(found)) == (value, type(value))
    assert parameters.misfit(value) is None
    results = Results(ClientHooks())
    assert results.read("j1", plain(value, "it"), parameters.returns) == value


@each(
    ("hint", "value", "said"),
    [
        (Item, {"sku": "a", "count": 0}, r"Input should be greater than 0 - at `\$\.count`$"),
        (Item, {"count": "secret"}, r"Field required - at `\$\.sku` \(and 1 more\)$"),
        (list[Item], [{"sku": "a"}, {"sku": 5}], r"Input should be a valid string - at `\$\[1\]\.sku`$"),
        (Item | None, "secret", "Input should be an object$"),
        (Pet, {"kind": "secret"}, "Input tag is none of the expected tags$"),
        (Pet, {"kind": "cat", "lives": "secret"}, r"Input should be a valid integer, .* - at `\$\.cat\.lives`$"),
        (Ordered, {"low": 2, "high": 1}, "Value error, low is above high$"),
        (Total, {"net": 1, "gross": 2}, r"Extra inputs are not permitted - at `\$\.gross`$"),
        (Strict, {"day": 5, "tags": []}, r"Input should be a valid date - at `\$\.day`$"),
        (Point, {"x": -1}, r"Input should be greater than or equal to 0 - at `\$\.x`$"),
        (Drawing, {"points": [{"x": -1}]}, r"Input should be greater than or equal to 0 - at `\$\.points\[0\]\.x`$"),
        (Bag, {"items": [{"sku": "a"}, {}]}, r"Field required - at `\$\.sku` - at `\$\.items\[1\]`$"),
        (PositiveInt, 0, "Input should be greater than 0$"),
        (HttpUrl, "secret", "Input should be a valid URL"),
        (np.int64, 0.5, "Expected `int`, got `float`$"),
        (np.int64, True, "Expected `int`, got `bool`$"),
        (np.int8, 300, "Expected `int8`, got a larger number$"),
        (np.float16, 1e300, "Expected `float16`, got a larger number$"),
        (list[np.bool_], [1], r"Expected `bool`, got `int` - at `\$\[0\]`$"),
        (deque[date], ["secret"], r"Invalid RFC3339"),
    ],
)
def test_what_doesn_t_fit_is_told_without_its_value(hint: Any, value: Any, said: str) -> None:
    def handler(one: Any) -> Any: ...

    handler.__annotations__ = {"one": hint, "return": hint}
    parameters = Parameters(handler)
    with pytest.raises(TypeError, match=r"'one' isn't what the worker could read by its hint: " + said) as refused:
        parameters.listed((value,), {})
    with pytest.raises(Unfit, match=r"^args\[0\]: " + said) as unfit:
        parameters.given(context(value))
    with pytest.raises(OjsError, match=r"what the job j1 returned isn't what its definition says: " + said) as other:
        Results(ClientHooks()).read("j1", value, hint)
    told = raised(unfit.value).members["error"]
    assert (told["code"], told["type"], told["retryable"]) == ("invalid_arguments", "ValidationError", False)
    assert not any("secret" in text for text in (str(refused.value), str(other.value), str(told)))
    assert parameters.misfit(value) is not None


def test_what_pydantic_says_is_cut() -> None:
    class Long(BaseModel):
        word: Literal[tuple(f"word-{number}" for number in range(1_000))]  # type: ignore[valid-type]

    with pytest.raises(OjsError) as refused:
        Results(ClientHooks()).read("j1", {"word": "no"}, Long)
    assert len(str(refused.value)) < 700


def test_hints_that_can_t_be_filled_are_refused_where_they_are_written() -> None:
    def of_unfinished(what: Unfinished) -> None: ...
    def of_list(what: list[Unfinished]) -> None: ...
    def of_dates(what: np.datetime64) -> None: ...
    def of_any_number(what: np.integer[Any]) -> None: ...
    def of_array(what: npt.NDArray[np.float64]) -> None: ...
    def of_keys(what: dict[np.int64, str]) -> None: ...
    def of_paths(what: deque[Path]) -> None: ...
    def of_both(what: Item | Bag) -> None: ...

    for handler in (of_unfinished, of_list, of_dates, of_any_number, of_array, of_keys, of_paths, of_both):
        with pytest.raises(TypeError, match=rf"{handler.__name__}: the hint of 'what' can't be filled from JSON: .*Hint what"):
            Parameters(handler)
    with pytest.raises(TypeError, match="a model of it isn't complete, since the name 'Later' is not defined yet"):
        Parameters(of_unfinished)
    with pytest.raises(TypeError, match="nothing in JSON is a ndarray"):
        Parameters(of_array)
    with pytest.raises(TypeError, match="no key in JSON is a int64"):
        Parameters(of_keys)


def test_a_model_that_its_own_reader_refuses_isn_t_pushed() -> None:
    class Renamed(BaseModel):
        name: str = Field(serialization_alias="n")

    def handler(one: Renamed) -> None: ...

    handler.__annotations__["one"] = Renamed
    with pytest.raises(TypeError, match=r"'one' isn't what the worker could read .*Field required - at `\$\.name`"):
        Parameters(handler).listed((Renamed(name="a"),), {})


def test_a_model_that_was_changed_to_what_it_can_t_be_isn_t_pushed() -> None:
    wrong = Item.model_construct(sku="a", count="secret")
    with pytest.raises(TypeError, match="valid integer") as refused:
        Parameters(order).listed((ORDER, [wrong], {}), {})
    assert "secret" not in str(refused.value)


def test_models_are_arguments_of_jobs_without_a_handler_too() -> None:
    assert template(JobRequest("a.job", (ITEM, np.int64(1))))["args"] == [{"sku": "a", "count": 2}, 1]


def test_the_order_of_a_union_is_that_of_its_hint() -> None:
    class One(BaseModel):
        n: int

    class Other(BaseModel):
        n: int

    found = [type(Results(ClientHooks()).read("j1", {"n": 1}, hint)) for hint in (One | Other, Other | One)]
    assert found == [One, Other]


async def test_a_handler_is_given_models_and_its_result_is_one() -> None:
    app = App("http://127.0.0.1:1")

    @app.job("order.take")
    async def take(one: Order, other: int) -> Item:
        assert isinstance(one.items[0], Item)
        return one.items[0].model_copy(update={"count": other})

    with inline(app):
        handle = await take.push(ORDER, 5)
        assert await handle.result() == Item(sku="a", count=5)
    with fake(app) as faked:
        await take.push(ORDER, 5)
        faked.assert_enqueued(take, one=ORDER, other=np.int64(5))
        faked.refute_enqueued(take, one=ORDER.model_copy(update={"note": "b"}))


# Who doesn't use them


def test_neither_library_is_imported_for_those_who_don_t_use_it() -> None:
    code = (
        "import sys; from dataclasses import dataclass; from collections import deque\n"
        "from ojs_nats import App, Client, Worker\n"
        "app = App('http://127.0.0.1:1')\n"
        "@app.job\n"
        "def one(a: int, b: deque[int], c: float = 0.5) -> list[int]: return [a]\n"
        "one.job(1, deque([2]))\n"
        "print(*sorted({'pydantic', 'annotated_types', 'numpy'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == ""
