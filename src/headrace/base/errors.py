"""Every error a user can meet, in one tree; each says what, where, why and how to fix it.

HeadraceError
├── UsageError ................ the command or call makes no sense as given (exit 2)
│   ├── BadDuration
│   ├── BadTime
│   ├── BadSetting
│   └── AppNotFound
├── DeclarationError .......... a declaration that could never run, with the user's file:line (exit 2)
│   ├── BadCall ............... arguments that a verb does not take
│   ├── BadEvent
│   ├── ExpressionError ....... with the expression and a caret under the word
│   │   ├── ExpressionRefused . not on the allow-list, or not SQL
│   │   ├── UnknownColumn
│   │   ├── ExpressionType .... the words are right, their types are not
│   │   └── BadQuery .......... a question to the lake that DuckDB cannot answer, or may not
│   ├── BadTopic
│   ├── BadStore
│   ├── BadPolicy ............. rules or thresholds that could never decide
│   ├── BadModel .............. a text that is no model, or one that cannot be asked here
│   ├── BadWindow
│   ├── BadAggregate
│   ├── BadStep
│   │   └── NoSuchVerb ........ also an AttributeError, as Python expects
│   └── BadApp
├── DataError ................. a value does not fit its event (exit 1)
│   ├── UnknownField
│   ├── WrongType
│   ├── MissingField
│   ├── MoneyOverflow
│   ├── DoesNotFit ............ an expression's result exists, but its type cannot hold it
│   └── Undecodable
├── LogError .................. the broker or a topic (exit 1)
│   ├── BrokerUnreachable ..... (exit 3)
│   ├── BrokerRefused ......... (exit 3)
│   ├── TopicMissing
│   ├── TopicRecreated
│   ├── RecordsLost
│   ├── PartitionMismatch
│   ├── RecordTooLarge
│   ├── GroupActive
│   ├── GroupMissing
│   ├── DeliveryFailed
│   └── TransactionExpired .... a batch was open for longer than the broker keeps a transaction
├── StoreError ................ PostgreSQL, Redis, the lake or files (exit 1)
│   ├── StoreUnreachable ...... (exit 3)
│   ├── StoreRefused .......... (exit 3)
│   ├── TableMismatch ......... a table is there, with other columns or another key
│   ├── TableMissing
│   ├── StoreKeyMissing ....... a row has null where its key should be
│   └── StoreLost ............. a store came back without rows that it had
├── RunError .................. a flow that cannot run, or stopped (exit 1)
│   ├── PlanChanged
│   ├── CheckpointInUse ....... (exit 3)
│   ├── CheckpointDamaged ..... a file of it is not what was written
│   ├── RebuildOpen ........... a rebuild of a store was cut off, and must be done again first
│   ├── RescaleOpen ........... a rescale of its state was cut off, and must be ended first
│   ├── ModeRefused
│   ├── GuaranteeRefused ...... this Spark master cannot give what an output asks for
│   ├── Fenced ................ another driver has taken over the flow
│   ├── StateBehind ........... more was written than the state knows of
│   ├── CommitsLost ........... which batch was written last is not known any more
│   ├── FunctionFailed ........ a Python function of the user's raised, and on_error="stop"
│   ├── Unbalanced ............ rows in and rows accounted for differ (rule D3): a fault of Headrace itself
│   └── FlowFailed
├── RequestError .............. a request that a service refuses, told over HTTP with its `status`
│   ├── KeyRefused
│   ├── NotFound
│   ├── MethodRefused
│   ├── OtherContent .......... the same id came before, with other values
│   ├── BodyTooLarge
│   ├── NotJson
│   ├── TooDeep
│   ├── CardNumber ............ something in it may be one; it is not shown, kept or logged
│   ├── CheckFailed ........... a check of the service's declaration
│   ├── UnknownKey ............ a value that must be a key of a table is none
│   ├── ClockAhead
│   ├── TooOld
│   ├── Overloaded
│   └── NotReady
└── EnvironmentFault .......... the machine or the embedded stack (exit 3)
    ├── PythonTooOld
    ├── JavaMissing
    ├── PortBusy
    ├── DiskFull
    ├── DownloadInterrupted
    ├── ChecksumMismatch
    ├── CorruptData
    ├── PartFailed
    ├── StackBusy
    ├── StackDown
    └── SparkFailed
        ├── SparkOutOfMemory
        ├── WorkerPythonMismatch
        └── KernelBroken
"""

from __future__ import annotations

from typing import ClassVar

from headrace.base.where import Where


class HeadraceError(Exception):
    """What happened, where in the user's code, why, and what to do about it."""

    code: ClassVar[str] = "failed"
    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, why: str = "", fix: str = "", where: Where | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix
        self.where = where

    def __str__(self) -> str:
        lines = [f"{self.what} [{self.code}]"]
        if self.where is not None:
            lines.append(f"  where: {self.where}")
            if self.where.source:
                lines.append(f"         {self.where.source}")
        lines.extend(self.excerpt())
        if self.why:
            lines.append(f"  why:   {self.why}")
        if self.fix:
            lines.append(f"  fix:   {self.fix}")
        return "\n".join(lines)

    def excerpt(self) -> list[str]:
        """Lines that show the place, between where and why."""
        return []

    def as_dict(self) -> dict[str, str]:
        """The same for machines: what `--json` prints."""
        found = {"code": self.code, "what": self.what, "why": self.why, "fix": self.fix}
        return found if self.where is None else found | {"where": str(self.where)}


class UsageError(HeadraceError):
    code = "usage"
    exit_code = 2


class BadDuration(UsageError):
    code = "bad-duration"


class BadTime(UsageError):
    code = "bad-time"


class BadSetting(UsageError):
    code = "bad-setting"


class AppNotFound(UsageError):
    code = "app-not-found"


class DeclarationError(HeadraceError):
    code = "declaration"
    exit_code = 2


class BadCall(DeclarationError):
    code = "bad-call"


class BadEvent(DeclarationError):
    code = "bad-event"


class BadWindow(DeclarationError):
    code = "bad-window"


class BadAggregate(DeclarationError):
    code = "bad-aggregate"


class BadStep(DeclarationError):
    code = "bad-step"


class BadTopic(DeclarationError):
    code = "bad-topic"


class BadStore(DeclarationError):
    code = "bad-store"


class BadPolicy(DeclarationError):
    code = "bad-policy"


class BadModel(DeclarationError):
    code = "bad-model"


class ExpressionError(DeclarationError):
    """`span` is the offending word in `text` (start, end); without it the whole text is shown and no caret."""

    code = "expression"

    def __init__(
        self,
        what: str,
        *,
        text: str = "",
        span: tuple[int, int] | None = None,
        why: str = "",
        fix: str = "",
        where: Where | None = None,
    ) -> None:
        super().__init__(what, why=why, fix=fix, where=where)
        self.text = text
        self.span = span

    def excerpt(self) -> list[str]:
        if not self.text:
            return []
        if self.span is None:
            return [f"  in:    {self.text}"]
        start, end = self.span
        first = self.text.rfind("\n", 0, start) + 1
        line = self.text[first:].split("\n", 1)[0]
        width = max(1, min(end, first + len(line)) - start)
        return [f"  in:    {line}", " " * (9 + start - first) + "^" * width]


class ExpressionRefused(ExpressionError):
    code = "expression-refused"


class UnknownColumn(ExpressionError):
    code = "unknown-column"


class ExpressionType(ExpressionError):
    code = "expression-type"


class BadQuery(ExpressionError):
    code = "bad-query"


class NoSuchVerb(BadStep, AttributeError):
    code = "no-such-verb"


class BadApp(DeclarationError):
    code = "bad-app"


class DataError(HeadraceError):
    code = "bad-data"


class UnknownField(DataError):
    code = "unknown-field"


class WrongType(DataError):
    code = "wrong-type"


class MissingField(DataError):
    code = "missing-field"


class MoneyOverflow(DataError):
    code = "money-overflow"


class DoesNotFit(DataError):
    code = "does-not-fit"


class Undecodable(DataError):
    code = "undecodable"


class LogError(HeadraceError):
    code = "log"


class BrokerUnreachable(LogError):
    code = "broker-unreachable"
    exit_code = 3


class BrokerRefused(LogError):
    code = "broker-refused"
    exit_code = 3


class TopicMissing(LogError):
    code = "topic-missing"


class TopicRecreated(LogError):
    code = "topic-recreated"


class RecordsLost(LogError):
    code = "records-lost"


class PartitionMismatch(LogError):
    code = "partition-mismatch"


class RecordTooLarge(LogError):
    code = "record-too-large"


class GroupActive(LogError):
    code = "group-active"


class GroupMissing(LogError):
    code = "group-missing"


class DeliveryFailed(LogError):
    code = "delivery-failed"


class TransactionExpired(LogError):
    code = "transaction-expired"


class StoreError(HeadraceError):
    code = "store"


class StoreUnreachable(StoreError):
    code = "store-unreachable"
    exit_code = 3


class StoreRefused(StoreError):
    code = "store-refused"
    exit_code = 3


class TableMismatch(StoreError):
    code = "table-mismatch"


class TableMissing(StoreError):
    code = "table-missing"


class StoreKeyMissing(StoreError):
    code = "store-key-missing"


class StoreLost(StoreError):
    code = "store-lost"


class RunError(HeadraceError):
    code = "run"


class PlanChanged(RunError):
    code = "plan-changed"


class CheckpointInUse(RunError):
    code = "checkpoint-in-use"
    exit_code = 3


class CheckpointDamaged(RunError):
    code = "checkpoint-damaged"


class RebuildOpen(RunError):
    code = "rebuild-open"


class RescaleOpen(RunError):
    code = "rescale-open"


class ModeRefused(RunError):
    code = "mode-refused"


class GuaranteeRefused(RunError):
    code = "guarantee-refused"


class Fenced(RunError):
    code = "fenced"


class StateBehind(RunError):
    code = "state-behind"


class CommitsLost(RunError):
    code = "commits-lost"


class FunctionFailed(RunError):
    code = "function-failed"


class Unbalanced(RunError):
    code = "unbalanced"


class FlowFailed(RunError):
    code = "flow-failed"


class RequestError(HeadraceError):
    code = "request"
    status: ClassVar[int] = 400


class KeyRefused(RequestError):
    code = "key-refused"
    status = 401


class NotFound(RequestError):
    code = "not-found"
    status = 404


class MethodRefused(RequestError):
    code = "method-refused"
    status = 405


class OtherContent(RequestError):
    code = "other-content"
    status = 409


class BodyTooLarge(RequestError):
    code = "body-too-large"
    status = 413


class NotJson(RequestError):
    code = "not-json"
    status = 415


class TooDeep(RequestError):
    code = "too-deep"


class CardNumber(RequestError):
    code = "card-number"
    status = 422


class CheckFailed(RequestError):
    code = "check-failed"
    status = 422


class UnknownKey(RequestError):
    code = "unknown-key"
    status = 422


class ClockAhead(RequestError):
    code = "clock-ahead"
    status = 422


class TooOld(RequestError):
    code = "too-old"
    status = 422


class Overloaded(RequestError):
    code = "overloaded"
    status = 503


class NotReady(RequestError):
    code = "not-ready"
    status = 503


class EnvironmentFault(HeadraceError):
    code = "environment"
    exit_code = 3


class PythonTooOld(EnvironmentFault):
    code = "python-too-old"


class JavaMissing(EnvironmentFault):
    code = "java-missing"


class PortBusy(EnvironmentFault):
    code = "port-busy"


class DiskFull(EnvironmentFault):
    code = "disk-full"


class DownloadInterrupted(EnvironmentFault):
    code = "download-interrupted"


class ChecksumMismatch(EnvironmentFault):
    code = "checksum-mismatch"


class CorruptData(EnvironmentFault):
    code = "corrupt-data"


class PartFailed(EnvironmentFault):
    code = "part-failed"


class StackBusy(EnvironmentFault):
    code = "stack-busy"


class StackDown(EnvironmentFault):
    code = "stack-down"


class SparkFailed(EnvironmentFault):
    code = "spark-failed"


class SparkOutOfMemory(SparkFailed):
    code = "spark-out-of-memory"


class WorkerPythonMismatch(SparkFailed):
    code = "worker-python-mismatch"


class KernelBroken(SparkFailed):
    code = "kernel-broken"
