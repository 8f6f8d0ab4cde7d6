"""The state machine of a job as pure functions: `(job, command, moment) -> Transition`, or a refusal as `OjsError`.

Nothing here reads a clock, draws a random number or talks to anybody; `Moment` brings what a decision needs.

The one package that is read through its name: `transitions.push(…)`, `transitions.ack(…)`.
"""

from __future__ import annotations

from ojs_engine.domain.transitions.claim import JobHolder as JobHolder
from ojs_engine.domain.transitions.claim import claim as claim
from ojs_engine.domain.transitions.claim import extend as extend
from ojs_engine.domain.transitions.clearance import WAITING as WAITING
from ojs_engine.domain.transitions.clearance import Clearance as Clearance
from ojs_engine.domain.transitions.clearance import drop as drop
from ojs_engine.domain.transitions.clearance import move as move
from ojs_engine.domain.transitions.clearance import postpone as postpone
from ojs_engine.domain.transitions.clearance import remove as remove
from ojs_engine.domain.transitions.deadlines import DEFAULT_LEASE_MS as DEFAULT_LEASE_MS
from ojs_engine.domain.transitions.deadlines import DEFAULT_TIMEOUT_MS as DEFAULT_TIMEOUT_MS
from ojs_engine.domain.transitions.deadlines import LIVENESS_MS as LIVENESS_MS
from ojs_engine.domain.transitions.deadlines import expired as expired
from ojs_engine.domain.transitions.deadlines import next_deadline as next_deadline
from ojs_engine.domain.transitions.due import Liveness as Liveness
from ojs_engine.domain.transitions.due import LivenessNeededError as LivenessNeededError
from ojs_engine.domain.transitions.due import due as due
from ojs_engine.domain.transitions.due import expire as expire
from ojs_engine.domain.transitions.due import needs_liveness as needs_liveness
from ojs_engine.domain.transitions.failure import Action as Action
from ojs_engine.domain.transitions.failure import Failure as Failure
from ojs_engine.domain.transitions.finish import ack as ack
from ojs_engine.domain.transitions.finish import acked_before as acked_before
from ojs_engine.domain.transitions.finish import nack as nack
from ojs_engine.domain.transitions.log import TransitionName as TransitionName
from ojs_engine.domain.transitions.log import leading_to as leading_to
from ojs_engine.domain.transitions.manual import RetryOverride as RetryOverride
from ojs_engine.domain.transitions.manual import cancel as cancel
from ojs_engine.domain.transitions.manual import delete as delete
from ojs_engine.domain.transitions.manual import prune as prune
from ojs_engine.domain.transitions.manual import reissue as reissue
from ojs_engine.domain.transitions.manual import reprioritise as reprioritise
from ojs_engine.domain.transitions.manual import retry_by_hand as retry_by_hand
from ojs_engine.domain.transitions.manual import retry_discarded as retry_discarded
from ojs_engine.domain.transitions.manual import retry_now as retry_now
from ojs_engine.domain.transitions.manual import retry_one as retry_one
from ojs_engine.domain.transitions.manual import run_now as run_now
from ojs_engine.domain.transitions.push import activate as activate
from ojs_engine.domain.transitions.push import push as push
from ojs_engine.domain.transitions.push import push_discarded as push_discarded
from ojs_engine.domain.transitions.push import waits_at_once as waits_at_once
from ojs_engine.domain.transitions.result import Moment as Moment
from ojs_engine.domain.transitions.result import Rearm as Rearm
from ojs_engine.domain.transitions.result import Transition as Transition
from ojs_engine.domain.transitions.settle import claim_of as claim_of
