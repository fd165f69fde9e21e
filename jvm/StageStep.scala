/** A step in its stage: chain rows become the step's rows, its verdicts and results become chain rows, all are counted. */
package headrace

import java.nio.charset.StandardCharsets.UTF_8
import java.util.ArrayList

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BasePredicate, BoundReference, Expression, GenericInternalRow, InterpretedUnsafeProjection, JoinedRow, Predicate, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.TimestampType
import org.apache.spark.unsafe.types.UTF8String

import headrace.steps.{BlobReader, BlobWriter, Order, Passes, Result, Row, SlicesState, State, Step, Times, Verdict}

/** `counts`: of this step in this task, by term. */
final class StageStep(stage: StageSpec, spec: StepSpec, counts: Array[Long]) {
  private val layout = new StepLayout(stage, spec)
  private val step = layout.step
  private val slices = Combine.slicesOf(stage, layout).orNull

  // Interpreted: a step is made for every task, and generating code for it would cost more than its results.
  private lazy val keyOut = packing((0 until spec.keys).map(column))
  private lazy val resultOut = packing(spec.output.indices.map(i => BoundReference(i, spec.output(i).kind.spark, nullable = true)))
  private lazy val lateOut = packing((layout.arguments until layout.columns).map(column) :+ BoundReference(layout.columns, TimestampType, nullable = false))
  private lazy val deadOut = new DeadLetter(stage.app, stage.topics, Field.schema(spec.input))
  private val having: BasePredicate = if (spec.having == null) null else Predicate.createInterpreted(spec.having)
  private val passes: Passes = if (having == null) null else result => having.eval(rowOf(result))

  // One key at a time: what follows belongs to the key that is open.
  private val row = new Row
  private val payload = new UnsafeRow(layout.columns)
  private val results = new ArrayList[Result]
  private val out = new BlobWriter
  private var rowsOut: ArrayList[InternalRow] = _
  private var key: Array[Byte] = _
  private var keyValues: UnsafeRow = _
  private var state: State = _
  private var heldBefore = 0L
  var wasKept = false
  var entered: Long = Times.NEVER // the moment under which the key stands in the wheel

  /** Opens a key; `bytes`: its state as it was kept, or null. */
  def open(key: Array[Byte], bytes: Array[Byte]): Unit = {
    this.key = key
    keyValues = null
    rowsOut = new ArrayList[InternalRow]
    wasKept = bytes != null
    if (wasKept) {
      val in = new BlobReader(bytes)
      Step.checkVersion(in.byte())
      entered = in.long()
      if (layout.keyKept) {
        val kept = in.binary()
        keyValues = new UnsafeRow(spec.keys)
        keyValues.pointTo(kept, kept.length)
      }
      state = step.read(in)
    } else {
      entered = Times.NEVER
      state = step.fresh()
    }
    heldBefore = state.held
  }

  private def column(at: Int): Expression = BoundReference(at, spec.input(at).kind.spark, nullable = true)

  private def packing(columns: Seq[Expression]): UnsafeProjection = InterpretedUnsafeProjection.createProjection(columns)

  def empty: Boolean = state.empty

  def toBytes: Array[Byte] = {
    out.clear()
    out.byte(Step.VERSION)
    out.long(entered)
    if (layout.keyKept) out.binary(keyValues.getBytes)
    step.write(state, out)
    out.result()
  }

  /** When time next has something to say to this key, in ms of the query's watermark (of the clock). */
  def due: Long = {
    val own = step.due(state)
    if (own == Times.NEVER) own else own + spec.hold
  }

  /** The batch's rows of the key, under the watermark before it. */
  def take(rows: Iterator[InternalRow], clock: Long): Unit =
    if (step.ordered) takeInOrder(rows, clock)
    else while (rows.hasNext) {
      val chain = rows.next().asInstanceOf[UnsafeRow]
      if (chain.getInt(Stage.PORT) == Stage.TOGETHER) takeTogether(chain)
      else {
        point(chain, clock)
        judged(chain, step.step(state, row, before(chain, clock)), clock)
      }
    }

  /** Rows that were put together before the shuffle. */
  private def takeTogether(chain: UnsafeRow): Unit = {
    val in = new BlobReader(chain.getBinary(Stage.PAYLOAD))
    if (layout.keyKept) {
      val columns = in.binary()
      if (keyValues == null) {
        keyValues = new UnsafeRow(spec.keys)
        keyValues.pointTo(columns, columns.length)
      }
    }
    val rows = chain.getLong(Stage.OFF)
    slices.merge(state.asInstanceOf[SlicesState], chain.getLong(Stage.TIME), rows, slices.tally.read(in), before(chain, 0))
    counts(Counters.IN) += rows
  }

  private def takeInOrder(rows: Iterator[InternalRow], clock: Long): Unit = {
    val sorted = new ArrayList[InOrder]
    while (rows.hasNext) {
      val chain = rows.next().asInstanceOf[UnsafeRow].copy()
      sorted.add(new InOrder(chain, chain.getLong(Stage.TIME), idOf(chain)))
    }
    if (sorted.size > 1) sorted.sort((one, other) => one.compare(other))
    var late: ArrayList[UnsafeRow] = null
    sorted.forEach { entry =>
      point(entry.chain, clock)
      val verdict = step.step(state, row, before(entry.chain, clock))
      if (verdict == Verdict.LATE) {
        if (late == null) late = new ArrayList[UnsafeRow]
        late.add(entry.chain)
      } else judged(entry.chain, verdict, clock)
    }
    if (late != null) tryAgain(late, clock)
  }

  /** Late rows once more, last first; what is still late is set aside with the watermark it met (rule W4). */
  private def tryAgain(late: ArrayList[UnsafeRow], clock: Long): Unit = {
    val verdicts = new Array[Int](late.size)
    var i = late.size - 1
    while (i >= 0) {
      point(late.get(i), clock)
      verdicts(i) = step.step(state, row, before(late.get(i), clock))
      i -= 1
    }
    i = 0
    while (i < late.size) {
      judged(late.get(i), verdicts(i), clock)
      i += 1
    }
  }

  /** The watermark a row met, as this step meets it: less its hold (rule T6), or the clock (rule W7). */
  private def before(chain: UnsafeRow, clock: Long): Long =
    if (stage.byClock) clock
    else {
      val ms = chain.getLong(Stage.BEFORE)
      if (ms == Times.NONE) ms else ms - spec.hold
    }

  /** Makes `row` the step's view of this chain row, which stays where it lies. */
  private def point(chain: UnsafeRow, clock: Long): Unit = {
    row.time = if (stage.byClock) clock * Times.MILLI else chain.getLong(Stage.TIME)
    row.src = chain.getInt(Stage.SRC)
    row.part = chain.getInt(Stage.PART)
    row.off = chain.getLong(Stage.OFF)
    row.id = idOf(chain)
    Stage.pointPayload(chain, payload)
    row.args = payload
    if (layout.keyKept && keyValues == null) keyValues = keyOut(payload).copy()
  }

  private def idOf(chain: UnsafeRow): Array[Byte] =
    if (chain.isNullAt(Stage.ID)) Order.NO_ID else chain.getBinary(Stage.ID)

  /** What becomes of a row: counted, and sent on where somebody waits for it. */
  private def judged(chain: UnsafeRow, verdict: Int, clock: Long): Unit = {
    counts(Counters.IN) += 1
    verdict match {
      case Verdict.HELD => () // counted in the state itself, when the key is closed
      case Verdict.USED =>
        counts(Counters.USED) += 1
        rowsOut.add(chain)
      case Verdict.LATE =>
        counts(Counters.LATE) += 1
        if (spec.emitsLate) {
          Stage.pointPayload(chain, payload)
          val met = Math.max(before(chain, clock), 0) * Times.MILLI
          val told = lateOut(new JoinedRow(payload, new GenericInternalRow(Array[Any](met))))
          rowsOut.add(changed(chain, spec.ordinal, Stage.LATE_ROWS, chain.getBinary(Stage.KEY), told.copy().getBytes))
        }
      case Verdict.DUPLICATE =>
        counts(Counters.DUPLICATES) += 1
        if (spec.emitsDuplicates)
          rowsOut.add(changed(chain, spec.ordinal, Stage.DUPLICATES, chain.getBinary(Stage.KEY), chain.getBinary(Stage.PAYLOAD)))
      case dead =>
        counts(Counters.DEAD) += 1
        Stage.pointPayload(chain, payload)
        val letter = deadOut.of(Verdict.names(dead), chain.getInt(Stage.SRC), payload)
        val place = deadOut.key(chain.getInt(Stage.SRC), chain.getInt(Stage.PART), chain.getLong(Stage.OFF))
        rowsOut.add(changed(chain, Stage.DEAD_LETTERS, Stage.ROWS, place, letter))
    }
  }

  /** The key's time moves; what it had to say, and what was used up, is known after. */
  def moveTime(watermark: Long, clock: Long): Unit = {
    results.clear()
    val own = if (watermark == Times.NONE || stage.byClock) watermark else watermark - spec.hold
    counts(Counters.USED) += step.onTime(state, own, clock, passes, results)
    counts(Counters.HELD) += state.held - heldBefore
    var i = 0
    while (i < results.size) {
      rowsOut.add(sent(results.get(i)))
      i += 1
    }
  }

  /** What this key gave, in order. */
  def outcome: Iterator[InternalRow] = if (rowsOut.isEmpty) Iterator.empty else rowsOut.iterator.asScala

  private def sent(result: Result): InternalRow = {
    val id = Ids.stable(stage.app, stage.version, spec.name, new String(key, UTF_8), result.cause)
    val told = resultOut(rowOf(result)).copy().getBytes // a copy: the projection writes the next row into the same bytes
    // No watermark before: the hold keeps results from being late for the next step, whatever W(k-1) was.
    new GenericInternalRow(Array[Any](
      spec.ordinal, Stage.ROWS, key, result.time, Times.NONE, Stage.DERIVED + spec.ordinal, 0, result.revision, id, told))
  }

  /** The columns of rule F2. */
  private def rowOf(result: Result): InternalRow = {
    val told = new Array[Any](spec.output.length)
    var i = 0
    while (i < spec.keys) {
      told(i) = if (layout.keyKept) layout.keyKinds(i).get(keyValues, i) else UTF8String.fromBytes(key)
      i += 1
    }
    val bounded = result.start != Times.NONE
    told(i) = if (bounded) result.start else null
    told(i + 1) = if (bounded) result.end else null
    told(i + 2) = UTF8String.fromString(result.kind)
    told(i + 3) = result.revision
    System.arraycopy(result.values, 0, told, i + 4, result.values.length)
    new GenericInternalRow(told)
  }

  private def changed(chain: UnsafeRow, step: Int, port: Int, key: Array[Byte], payload: Array[Byte]): InternalRow =
    new GenericInternalRow(Array[Any](
      step, port, key, chain.getLong(Stage.TIME), chain.getLong(Stage.BEFORE), chain.getInt(Stage.SRC),
      chain.getInt(Stage.PART), chain.getLong(Stage.OFF), if (chain.isNullAt(Stage.ID)) null else chain.getBinary(Stage.ID), payload))
}

/** A chain row that waits for its turn. */
final class InOrder(val chain: UnsafeRow, time: Long, id: Array[Byte])
    extends Order(time, chain.getInt(Stage.SRC), chain.getInt(Stage.PART), chain.getLong(Stage.OFF), id)
