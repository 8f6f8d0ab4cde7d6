from __future__ import annotations

import pytest

from ojs_features.crons.expression import BadExpression, Every, Fields, parse_expression
from support.tables import each


@each(
    ("sent", "read"),
    [
        ("* * * * *", "0 * * * * *"),
        ("*/15 0 1,15 * *", "0 */15 0 1,15 * *"),
        ("*/15 0 * * 1-5", "0 */15 0 * * 1,2,3,4,5"),
        ("5/15 8-14/2 4-4 * *", "0 5,20,35,50 8,10,12,14 4 * *"),
        ("30 */5 * * * *", "30 */5 * * * *"),
        ("*/10 * * * * *", "*/10 * * * * *"),
        ("  0\t9  * * * ", "0 0 9 * * *"),
        ("0 0 1 jan,FEB *", "0 0 0 1 1,2 *"),
        ("0 9 * * Mon-FRI", "0 0 9 * * 1,2,3,4,5"),
        ("0 9 * * 0", "0 0 9 * * 0"),
        ("0 9 * * 7", "0 0 9 * * 0"),
        ("0 9 * * SAT-SUN", "0 0 9 * * 6,0"),
        ("0 9 * * 5-7", "0 0 9 * * 5,6,0"),
        ("0 9 * * SUN-SUN", "0 0 9 * * 0"),
        ("0 0 L * *", "0 0 0 l * *"),
        ("0 0 15W * *", "0 0 0 15w * *"),
        ("0 0 * * 5#3", "0 0 0 * * 5#3"),
        ("0 0 * * fri#3", "0 0 0 * * 5#3"),
        ("0 0 * * 5L", "0 0 0 * * l5"),
        ("0 0 12 * * ?", "0 0 12 * * *"),
        ("0 0 31 * *", "0 0 0 31 * *"),
        ("0 0 29 2 *", "0 0 0 29 2 *"),
        ("@yearly", "0 0 0 1 1 *"),
        ("@annually", "0 0 0 1 1 *"),
        ("@monthly", "0 0 0 1 * *"),
        ("@weekly", "0 0 0 * * 0"),
        ("@daily", "0 0 0 * * *"),
        ("@midnight", "0 0 0 * * *"),
        ("@Hourly", "0 0 * * * *"),
    ],
)
def test_an_expression_is_read(sent: str, read: str) -> None:
    assert parse_expression(sent) == Fields((read,))


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ("*/15 0 1,15 * 1-5", ("0 */15 0 1,15 * *", "0 */15 0 * * 1,2,3,4,5")),
        ("0 0 15 * 1#1", ("0 0 0 15 * *", "0 0 0 * * 1#1")),
        ("0 0 L * 5L", ("0 0 0 l * *", "0 0 0 * * l5")),
        ("0 0 15W,20,L,1 * *", ("0 0 0 20,1 * *", "0 0 0 15w * *", "0 0 0 l * *")),
        ("0 0 ? * 1#1,3", ("0 0 0 * * 3", "0 0 0 * * 1#1")),
        ("0 0 1,* * 2", ("0 0 0 * * *", "0 0 0 * * 2")),
        ("0 0 31 2 1", ("0 0 0 * 2 1",)),  # no February has a 31st, but Mondays
    ],
)
def test_each_way_of_naming_a_day_is_enough(sent: str, read: tuple[str, ...]) -> None:
    found = parse_expression(sent)
    assert isinstance(found, Fields)
    assert found.alternatives == read


@pytest.mark.parametrize(
    ("sent", "interval_ms"),
    [
        ("@every 30m", 1_800_000),
        ("@every 1h30m", 5_400_000),
        ("@every 45s", 45_000),
        ("@every 2h45m30s", 9_930_000),
        ("@every 1500ms", 1_500),
        ("@every 1.5s", 1_500),
        ("@every   1s", 1_000),
    ],
)
def test_an_interval_is_read(sent: str, interval_ms: int) -> None:
    assert parse_expression(sent) == Every(interval_ms)


@each(
    ("sent", "why"),
    [
        ("", "it is empty"),
        (" \t", "it is empty"),
        ("* * * *", "it has 4 fields"),
        ("0 0 0 0 0 0 0", "it has 7 fields"),
        ("tomorrow", "it has 1 field;"),
        ("not a valid cron", "it has 4 fields"),
        ("not a valid cron line", 'minute "not" is not a number'),
        ("60 * * * *", "minute 60 is not from 0 to 59"),
        ("* 24 * * *", "hour 24 is not from 0 to 23"),
        ("* * 0 * *", "day of month 0 is not from 1 to 31"),
        ("* * 32 * *", "day of month 32 is not from 1 to 31"),
        ("* * * 13 *", "month 13 is not from 1 to 12"),
        ("* * * 0 *", "month 0 is not from 1 to 12"),
        ("* * * * 8", "day of week 8 is not from 0 to 7"),
        ("60 * * * * *", "second 60 is not from 0 to 59"),
        ("*/0 * * * *", 'minute "*/0" has the step 0'),
        ("1-5/0 * * * *", "has the step 0"),
        ("*/99 * * * *", "has the step 99"),
        ("10-5 * * * *", '"10-5" is a range that ends before it starts'),
        ("1-2-3 * * * *", 'minute "1-2-3" is neither'),
        ("1,,2 * * * *", 'minute "" is neither'),
        ("* * * * *,", 'day of week "" is neither'),
        ("-1 * * * *", 'minute "-1" is neither'),
        ("1.5 * * * *", 'minute "1.5" is neither'),
        ("\N{FULLWIDTH DIGIT FIVE} * * * *", "is neither"),
        ("²W * * * *", 'minute "²w" is neither'),
        ("* * ²W * *", 'day of month "²w" is neither'),
        ("99999999999999999999 * * * *", "minute 999999999 is not"),
        ("MON * * * *", 'minute "mon" is not a number'),
        ("* * * foo *", 'month "foo" is not a number or a name such as JAN'),
        ("? * * * *", 'minute "?" is neither'),
        ("L * * * *", 'minute "l" is not a number'),
        ("0 0 32W * *", "day of month 32 is not from 1 to 31"),
        ("0 0 * * 5#6", "must name one of the first to fifth"),
        ("0 0 30W 2 *", "it would never fire"),
        ("0 0 31W 2,4 *", "it would never fire"),
        ("0 0 30 2 *", "it would never fire"),
        ("0 0 31 4,6 *", "it would never fire"),
        ("@reboot", '"@reboot" is none of'),
        ("@every", '"@every" is none of'),
        ("@every soon", "is none of"),
        ("@every 5", "is none of"),
        ("@every -5s", "is none of"),
        ("@every 500ms", "must be from 1s"),
        ("@every 0s", "must be from 1s"),
        ("@every 9000h", "must be from 1s to 8784h"),
        ("* " * 200, "it has 400 characters; the limit is 255"),
    ],
)
def test_a_bad_expression_is_refused_by_what_is_wrong(sent: str, why: str) -> None:
    with pytest.raises(BadExpression) as caught:
        parse_expression(sent)
    assert why in str(caught.value)
