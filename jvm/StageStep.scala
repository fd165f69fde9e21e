/** A step in its stage: chain rows become the step's rows, what it says becomes chain rows, all are counted. */
package headrace

import java.util.ArrayList

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeRow}

import headrace.steps.{BlobReader, BlobWriter, Order, Row, State, Step, Times, Verdict}

/** For one key and one batch: `open`, `take` if it has rows, `moveTime`; then what it said is its `outcome`.
  * `counts`: of this step in this task, by term. */
abstract class StageStep(stage: StageSpec, spec: StepSpec, counts: Array[Long]) {
  private val out = new BlobWriter
  private val letters = new Array[DeadLetter](spec.inputs.length)

  // One key at a time: what follows belongs to the key that is open.
  protected var key: Array[Byte] = _
  protected var state: State = _
  protected var rowsOut: ArrayList[InternalRow] = _
  private var heldBefore = 0L
  var kept: Array[Byte] = _ // its state as it was kept, null: it had none
  var entered: Long = Times.NEVER // the moment under which the key stands in the wheel

  /** The batch's rows of the key, under the watermark before it. */
  def take(rows: Iterator[InternalRow], clock: Long): Unit

  protected def fresh(): State
  protected def read(in: BlobReader): State
  protected def write(out: BlobWriter): Unit

  /** The pure step's own `due` and `onTime`, in ms of its own watermark; what it says goes to `rowsOut`. */
  protected def ownDue: Long
  protected def onTime(watermark: Long, clock: Long): Long

  /** Opens a key; `bytes`: its state as it was kept, or null. */
  final def open(key: Array[Byte], bytes: Array[Byte]): Unit = {
    this.key = key
    kept = bytes
    rowsOut = new ArrayList[InternalRow]
    if (bytes != null) {
      val in = new BlobReader(bytes)
      Step.checkVersion(in.byte())
      entered = in.long()
      state = read(in)
    } else {
      entered = Times.NEVER
      state = fresh()
    }
    heldBefore = state.held
  }

  final def empty: Boolean = state.empty

  final def toBytes: Array[Byte] = {
    out.clear()
    out.byte(Step.VERSION)
    out.long(entered)
    write(out)
    out.result()
  }

  /** When time next has something to say to this key, in ms of the query's watermark (of the clock). */
  final def due: Long = {
    val own = ownDue
    if (own == Times.NEVER) own else own + spec.hold
  }

  /** The key's time moves; what it had to say, and what was used up, is known after. */
  final def moveTime(watermark: Long, clock: Long): Unit = {
    val own = if (watermark == Times.NONE || stage.byClock) watermark else watermark - spec.hold
    counts(Counters.USED) += onTime(own, clock)
    counts(Counters.HELD) += state.held - heldBefore
    counts(Counters.KEYS) += (if (empty) 0 else 1) - (if (kept == null) 0 else 1)
  }

  /** So large is what is kept of the key now. */
  final def sized(bytes: Int): Unit = counts(Counters.BYTES) += bytes - (if (kept == null) 0 else kept.length)

  /** What this key gave, in order. */
  final def outcome: Iterator[InternalRow] = if (rowsOut.isEmpty) Iterator.empty else rowsOut.iterator.asScala

  /** The watermark a row met, as this step meets it: less its hold (rule T6), or the clock (rule W7). */
  protected final def before(chain: UnsafeRow, clock: Long): Long =
    if (stage.byClock) clock
    else {
      val ms = chain.getLong(Stage.BEFORE)
      if (ms == Times.NONE) ms else ms - spec.hold
    }

  protected final def place(chain: UnsafeRow, row: Row): Unit = {
    row.time = chain.getLong(Stage.TIME)
    row.src = chain.getInt(Stage.SRC)
    row.part = chain.getInt(Stage.PART)
    row.off = chain.getLong(Stage.OFF)
    row.id = StageStep.idOf(chain)
  }

  /** A row that the step refuses becomes a dead letter. */
  protected final def bury(chain: UnsafeRow, verdict: Int, input: Int, payload: UnsafeRow): Unit = {
    counts(Counters.DEAD) += 1
    Stage.pointPayload(chain, payload)
    rowsOut.add(letter(Verdict.names(verdict), input, new InOrder(chain), chain.getLong(Stage.BEFORE), payload))
  }

  /** A letter about a row of this input. */
  protected final def letter(reason: String, input: Int, row: Order, before: Long, columns: InternalRow): InternalRow = {
    if (letters(input) == null) letters(input) = new DeadLetter(stage.app, stage.topics, Field.schema(spec.inputs(input)))
    val place = letters(input).key(row.src, row.part, row.off)
    chainRow(Stage.DEAD_LETTERS, Stage.ROWS, place, row.time, before, row, letters(input).of(reason, row.src, columns))
  }

  protected final def chainRow(
      step: Int, port: Int, key: Array[Byte], time: Long, before: Long, place: Order, payload: Array[Byte]): InternalRow =
    new GenericInternalRow(Array[Any](
      step, port, key, time, before, place.src, place.part, place.off, if (place.id.length == 0) null else place.id, payload))

  /** The same row, sent elsewhere. */
  protected final def changed(chain: UnsafeRow, step: Int, port: Int, key: Array[Byte], payload: Array[Byte]): InternalRow =
    chainRow(step, port, key, chain.getLong(Stage.TIME), chain.getLong(Stage.BEFORE), new InOrder(chain), payload)
}

object StageStep {
  def idOf(chain: UnsafeRow): Array[Byte] = if (chain.isNullAt(Stage.ID)) Order.NO_ID else chain.getBinary(Stage.ID)
}

/** A chain row that waits for its turn: in order R2, of one place by input. */
final class InOrder(val chain: UnsafeRow)
    extends Order(chain.getLong(Stage.TIME), chain.getInt(Stage.SRC), chain.getInt(Stage.PART), chain.getLong(Stage.OFF), StageStep.idOf(chain))
    with Comparable[InOrder] {

  def compareTo(other: InOrder): Int = {
    val order = compare(other)
    if (order != 0) order else Integer.compare(chain.getInt(Stage.PORT), other.chain.getInt(Stage.PORT))
  }
}
