"""The places where statistics are plugged into the server."""

from __future__ import annotations

from typing import Final

from ojs_engine.jetstream.grants import FeatureGrants
from ojs_features.plug import Feature
from ojs_features.statistics.index import SCHEMA, TABLES
from ojs_features.statistics.keeper import statistics_keeper
from ojs_features.statistics.records import span_reader
from ojs_features.statistics.routes import PART
from ojs_features.statistics.series import QUESTION, HistoryAsk, history
from ojs_features.statistics.time_buckets import TimeBuckets
from ojs_index.asking.counting import Counting
from ojs_index.followed import Followed, Question

STATISTICS: Final = Feature(
    name="statistics",
    parts=(PART,),
    records=(span_reader,),
    followed=(
        Followed(
            reader=span_reader,
            counting=Counting(tables=TABLES, schema=SCHEMA, make=TimeBuckets),
            keeper=statistics_keeper,
            questions={QUESTION: Question(HistoryAsk, history)},
        ),
    ),
    grants=FeatureGrants(writes={"projector": (span_reader.kind,)}),
)
