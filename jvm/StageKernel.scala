/** The kernel of a stage: Spark's rows and timers on one side, pure steps on the other.
  *
  * State is one value per step and key, read once per batch in which the key has rows or something due, and written once
  * if it changed. Steps whose keys grow too large for that keep pieces of it apart (Chunks).
  * When something is due stands in the wheel; Spark's timers only see to it that the wheel is turned once a batch, after
  * all rows. */
package headrace

import java.util.{ArrayList, Arrays, HashSet}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.Encoders
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.statefulprocessor.ImplicitGroupingKeyTracker
import org.apache.spark.sql.streaming.{ExpiredTimerInfo, MapState, OutputMode, StatefulProcessor, TimeMode, TimerValues, TTLConfig, ValueState}

import headrace.steps.{Chunks, Times}

/** `sites`: where its steps count, one for each. */
class StageKernel(spec: StageSpec, counters: Counters, sites: Array[Int])
    extends StatefulProcessor[(Long, Array[Byte]), InternalRow, InternalRow] {
  import StageKernel._

  @transient private var kept: ValueState[Array[Byte]] = _
  @transient private var pieces: Pieces = _ // null where no step asks for it
  @transient private lazy val steps = mutable.LongMap.empty[StageStep]
  @transient private lazy val wheel = new Wheel(new Lists)
  @transient private lazy val moved = new HashSet[Key] // keys whose entries in the wheel, if due now, hold no longer

  override def init(output: OutputMode, time: TimeMode): Unit = {
    kept = getHandle.getValueState[Array[Byte]]("state", Encoders.BINARY, TTLConfig.NONE)
    if (spec.steps.exists(_.chunked))
      pieces = new Pieces(getHandle.getMapState[Array[Byte], Array[Byte]]("chunks", Encoders.BINARY, Encoders.BINARY, TTLConfig.NONE))
  }

  override def handleInputRows(key: (Long, Array[Byte]), rows: Iterator[InternalRow], now: TimerValues): Iterator[InternalRow] = {
    val step = stepOf(key._1)
    if (step == null) return rows
    if (!wheel.open()) startTurning()
    step.open(key._2, kept.get())
    step.take(rows, clock(now))
    moveTime(key, step, now)
    step.outcome
  }

  /** Turns the wheel, for keys without rows in this batch. */
  override def handleExpiredTimer(key: (Long, Array[Byte]), now: TimerValues, timer: ExpiredTimerInfo): Iterator[InternalRow] = {
    wheel.open()
    val results = new ArrayList[InternalRow]
    val turn = wheel.takeDue(moment(now)) { (due, slot, own) =>
      if (!moved.contains(new Key(slot, own))) as((slot, own)) {
        val bytes = kept.get()
        if (bytes != null) {
          val step = stepOf(slot)
          step.open(own, bytes)
          if (step.entered == due) {
            moveTime((slot, own), step, now)
            step.outcome.foreach(results.add(_))
          }
        }
      }
    }
    // Lazily, so that results of a great many keys are never all in memory.
    val spoken = Iterator.continually(turn.next()).takeWhile(identity).flatMap { _ =>
      val some = results.asScala.toArray
      results.clear()
      some.iterator
    }
    spoken ++ Iterator.single(()).flatMap { _ =>
      // Spark deletes the timer that fired, after this: so the next one needs another moment.
      if (wheel.close()) as(TURNING)(getHandle.registerTimer(if (timer.getExpiryTimeInMs() == FIRST) SECOND else FIRST))
      Iterator.empty
    }
  }

  /** Moves the key's time to now, keeps what is left of it, and enters its next moment into the wheel. An entry that
    * comes before it is left standing: it will be asked in its time. */
  private def moveTime(key: (Long, Array[Byte]), step: StageStep, now: TimerValues): Unit = {
    val to = moment(now)
    step.moveTime(to, clock(now))
    val passed = step.entered <= to // the entry comes up in this batch, and would find nothing to do
    if (passed) moved.add(new Key(key._1, key._2))
    if (step.empty) {
      if (step.kept != null) kept.clear()
      step.sized(0)
    } else {
      val due = step.due
      if (due != Times.NEVER && (passed || due < step.entered)) {
        wheel.add(due, key._1, key._2, to)
        step.entered = due
      }
      val bytes = step.toBytes
      if (!Arrays.equals(bytes, step.kept)) kept.update(bytes)
      step.sized(bytes.length)
    }
  }

  /** The step a slot belongs to, made when its first key comes; null if it is not this stage's. */
  private def stepOf(slot: Long): StageStep = {
    val ordinal = Stage.stepOf(slot)
    val found = steps.getOrNull(ordinal)
    if (found != null) return found
    val at = spec.steps.indexWhere(_.ordinal == ordinal)
    if (at < 0) return null
    val counts = counters.of(sites(at), ordinal)
    val made =
      if (spec.steps(at).givesRows) new StagedRows(spec, spec.steps(at), counts, pieces)
      else new StagedWindow(spec, spec.steps(at), counts)
    steps.put(ordinal, made)
    made
  }

  private def moment(now: TimerValues): Long = if (spec.byClock) clock(now) else watermark(now)

  private def clock(now: TimerValues): Long = now.getCurrentProcessingTimeInMs()

  /** Spark's watermark starts at 0, which is "none yet": nobody sends events from before 1970 only. */
  private def watermark(now: TimerValues): Long = {
    val ms = now.getCurrentWatermarkInMs()
    if (ms <= 0) Times.NONE else ms
  }

  private def startTurning(): Unit = if (!turning) {
    turning = true
    as(TURNING)(getHandle.registerTimer(FIRST))
  }

  @transient private var turning = false

  /** Spark's state is always that of the current key: this is how one reaches another's in the same partition. */
  private def as[T](key: (Long, Array[Byte]))(work: => T): T = {
    val current = ImplicitGroupingKeyTracker.getImplicitKeyOption
    ImplicitGroupingKeyTracker.setImplicitKey(key)
    try work
    finally current match {
      case Some(own) => ImplicitGroupingKeyTracker.setImplicitKey(own)
      case None => ImplicitGroupingKeyTracker.removeImplicitKey()
    }
  }

  /** The wheel's lists lie in the same state as the keys, under a step that does not exist. */
  private final class Lists extends WheelStore {
    def get(name: Array[Byte]): Array[Byte] = as((Stage.WHEEL, name))(kept.get())
    def put(name: Array[Byte], bytes: Array[Byte]): Unit = as((Stage.WHEEL, name))(kept.update(bytes))
    def remove(name: Array[Byte]): Unit = as((Stage.WHEEL, name))(kept.clear())
  }
}

/** Pieces of the current key's state. */
private final class Pieces(values: MapState[Array[Byte], Array[Byte]]) extends Chunks {
  def get(name: Array[Byte]): Array[Byte] = values.getValue(name)
  def put(name: Array[Byte], bytes: Array[Byte]): Unit = values.updateValue(name, bytes)
  def remove(name: Array[Byte]): Unit = values.removeKey(name)
}

object StageKernel {
  // Moments of the timer that turns the wheel: before any watermark and any clock, so that it fires in every batch.
  private val FIRST = -2L
  private val SECOND = -1L
  private val TURNING = (Stage.WHEEL, Array.emptyByteArray)

  private final class Key(val slot: Long, val key: Array[Byte]) {
    override def hashCode: Int = java.lang.Long.hashCode(slot)

    override def equals(other: Any): Boolean = other match {
      case that: Key => slot == that.slot && Arrays.equals(key, that.key)
      case _ => false
    }
  }
}
