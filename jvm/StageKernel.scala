/** The kernel of a stage: Spark's rows and timers on one side, pure steps on the other.
  *
  * State is one value per step and key, read once and written once per batch in which the key has rows or something due;
  * one timer per key, at the step's next due moment. */
package headrace

import scala.collection.mutable

import org.apache.spark.sql.Encoders
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.streaming.{ExpiredTimerInfo, OutputMode, StatefulProcessor, TimeMode, TimerValues, TTLConfig, ValueState}

import headrace.steps.Times

/** `sites`: where its steps count, one for each. */
class StageKernel(spec: StageSpec, counters: Counters, sites: Array[Int])
    extends StatefulProcessor[(Long, Array[Byte]), InternalRow, InternalRow] {
  @transient private var kept: ValueState[Array[Byte]] = _
  @transient private lazy val steps = mutable.LongMap.empty[StageStep]

  override def init(output: OutputMode, time: TimeMode): Unit =
    kept = getHandle.getValueState[Array[Byte]]("state", Encoders.BINARY, TTLConfig.NONE)

  override def handleInputRows(key: (Long, Array[Byte]), rows: Iterator[InternalRow], now: TimerValues): Iterator[InternalRow] = {
    val step = stepOf(key._1)
    if (step == null) return rows
    step.open(key._2, kept.get())
    val before = step.timer
    step.take(rows, clock(now))
    close(step, before, now)
  }

  /** Serves keys without rows: those with rows have moved on already, and their timer with them. */
  override def handleExpiredTimer(key: (Long, Array[Byte]), now: TimerValues, timer: ExpiredTimerInfo): Iterator[InternalRow] = {
    val step = stepOf(key._1)
    step.open(key._2, kept.get())
    close(step, Times.NEVER, now) // Spark itself deletes a timer that fired
  }

  /** Moves the key's time to now, keeps what is left of it, and sets its timer if that moved. */
  private def close(step: StageStep, before: Long, now: TimerValues): Iterator[InternalRow] = {
    step.moveTime(if (spec.byClock) clock(now) else watermark(now), clock(now))
    if (step.empty) { if (step.wasKept) kept.clear() } else kept.update(step.toBytes)
    val after = step.timer
    if (after != before) {
      if (before != Times.NEVER) getHandle.deleteTimer(before)
      if (after != Times.NEVER) getHandle.registerTimer(after)
    }
    step.given
  }

  /** The step a slot belongs to, made when its first key comes; null if it is not this stage's. */
  private def stepOf(slot: Long): StageStep = {
    val ordinal = Stage.stepOf(slot)
    val found = steps.getOrNull(ordinal)
    if (found != null) return found
    val at = spec.steps.indexWhere(_.ordinal == ordinal)
    if (at < 0) return null
    val made = new StageStep(spec, spec.steps(at), counters.of(sites(at), ordinal))
    steps.put(ordinal, made)
    made
  }

  private def clock(now: TimerValues): Long = now.getCurrentProcessingTimeInMs()

  /** Spark's watermark starts at 0, which is "none yet": nobody sends events from before 1970 only. */
  private def watermark(now: TimerValues): Long = {
    val ms = now.getCurrentWatermarkInMs()
    if (ms <= 0) Times.NONE else ms
  }
}
