/** Rows of one key and slice put together before the shuffle: fewer to move, to sort, and to look a state up for.
  *
  * Only rows of the log, and only those that no watermark can make late and no aggregate refuses: the others go on as they
  * are, and the kernel judges them. So both ways give the same. Where keys hardly repeat it gives up, since it would only
  * be in the way. Not for real-time mode, where a task does not end: windows do not run there (rule R5). */
package headrace

import java.util.ArrayList

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, GenericInternalRow, InterpretedUnsafeProjection, UnsafeProjection, UnsafeRow}
import org.apache.spark.unsafe.types.UTF8String

import headrace.steps.{BlobWriter, Order, Row, Slices, Times}

object Combine {

  /** The step of this spec, if its rows can be put together: a window of slices, and no row is refused by what came
    * before it. */
  def slicesOf(stage: StageSpec, layout: StepLayout): Option[Slices] = (layout.step: AnyRef) match {
    case slices: Slices if !stage.byClock && !slices.ordered => Some(slices)
    case _ => None
  }

  def helps(stage: StageSpec): Boolean = combiners(stage).nonEmpty

  def combiners(stage: StageSpec): Array[Combiner] = stage.steps.filterNot(_.givesRows).flatMap { spec =>
    val layout = new StepLayout(stage, spec)
    slicesOf(stage, layout).map(new Combiner(spec, layout, _))
  }
}

/** Puts rows of one step together. */
final class Combiner(spec: StepSpec, layout: StepLayout, slices: Slices) {
  import Combiner._

  private val tally = slices.tally
  private val portions = new Portions(tally.width)
  private val states = new ArrayList[Array[AnyRef]] // of each portion, where words cannot hold them
  private val keyColumns = new ArrayList[Array[Byte]] // of each portion, where they are not the key itself
  private val payload = new UnsafeRow(layout.columns)
  private val row = new Row
  private val out = new BlobWriter
  private var before = Times.NONE // the watermark that all these rows meet
  private var taken = 0 // rows, since portions last left
  private var givenUp = false
  private var leaving = false

  // Interpreted: made for every task, and generating code for it would cost more than its rows.
  private lazy val keyOut: UnsafeProjection = InterpretedUnsafeProjection.createProjection(
    (0 until spec.keys).map(i => BoundReference(i, spec.input(i).kind.spark, nullable = true)))

  val ordinal: Int = spec.ordinal

  def full: Boolean = portions.size >= MOST

  /** Adds the row to its portion, if it may be. */
  def take(
      key: UTF8String, time: Long, told: Long, src: Int, part: Int, off: Long, id: Array[Byte], args: UnsafeRow
  ): Boolean = {
    if (givenUp || leaving || src >= Stage.DERIVED || key == null) return false
    if (portions.size == 0) before = told
    else if (told != before) return false
    val start = slices.sliceOf(time)
    if (slices.isGone(start, if (told == Times.NONE) told else told - spec.hold)) return false
    payload.pointTo(args.getBaseObject, args.getBaseOffset, args.getSizeInBytes)
    row.time = time
    row.src = src
    row.part = part
    row.off = off
    row.id = if (id == null) Order.NO_ID else id
    row.args = payload
    if (tally.refuses(null, row) >= 0) return false
    val known = portions.size
    val portion = portions.add(start, key.getBaseObject, key.getBaseOffset, key.numBytes)
    if (layout.keyKept && portion == known) keyColumns.add(keyOut(payload).copy().getBytes)
    if (tally.width > 0) tally.add(portions.words, portions.counted(portion), row)
    else {
      if (portion == known) states.add(tally.empty())
      tally.add(states.get(portion), row)
    }
    taken += 1
    true
  }

  /** Every portion as a row of the chain; after the last there are none. Until then it takes no rows. */
  def leave(): Iterator[InternalRow] = {
    leaving = true
    Iterator.range(0, portions.size).map(together) ++ Iterator.single(()).flatMap { _ =>
      givenUp ||= taken < portions.size * 2
      leaving = false
      taken = 0
      portions.clear()
      states.clear()
      keyColumns.clear()
      Iterator.empty
    }
  }

  /** Its time is the slice's start, its offset the number of rows. */
  private def together(portion: Int): InternalRow = {
    out.clear()
    if (layout.keyKept) out.binary(keyColumns.get(portion))
    if (tally.width > 0) tally.write(portions.words, portions.counted(portion), out) else tally.write(states.get(portion), out)
    new GenericInternalRow(Array[Any](
      ordinal, Stage.TOGETHER, portions.key(portion), portions.start(portion), before, 0, 0, portions.rows(portion), null, out.result()))
  }
}

private object Combiner {
  val MOST = 1 << 15 // portions in memory; if they are of less than two rows each, keys hardly repeat
}

/** Puts rows of a stage's steps together. Whoever gives it rows lets what `leaves` go on before the next row. */
final class Combining(stage: StageSpec) {
  private val combiners = Combine.combiners(stage)
  private val payload = new UnsafeRow(0) // its columns are those of a step, which knows them
  private var out: Iterator[InternalRow] = Iterator.empty

  /** False: the row goes on as it is. `key` are bytes, not always a text; they and `row`, the payload, stay where they lie. */
  def take(
      step: Int, key: UTF8String, time: Long, before: Long, src: Int, part: Int, off: Long, id: Array[Byte], row: UnsafeRow
  ): Boolean = {
    val combiner = combinerOf(step)
    if (combiner == null || !combiner.take(key, time, before, src, part, off, id, row)) return false
    if (combiner.full) follow(combiner.leave())
    true
  }

  def take(chain: UnsafeRow): Boolean = {
    Stage.pointPayload(chain, payload)
    take(
      chain.getInt(Stage.STEP), chain.getUTF8String(Stage.KEY), chain.getLong(Stage.TIME), chain.getLong(Stage.BEFORE),
      chain.getInt(Stage.SRC), chain.getInt(Stage.PART), chain.getLong(Stage.OFF), chain.getBinary(Stage.ID), payload
    )
  }

  /** There are no more rows: what is left leaves. */
  def end(): Unit = follow(combiners.iterator.flatMap(_.leave()))

  /** By value: they are leaving from now on, though others go first. */
  private def follow(next: Iterator[InternalRow]): Unit = out = out ++ next

  def leaves: Boolean = out.hasNext

  def next(): InternalRow = out.next()

  private def combinerOf(ordinal: Int): Combiner = {
    var i = 0
    while (i < combiners.length) {
      if (combiners(i).ordinal == ordinal) return combiners(i)
      i += 1
    }
    null
  }
}

/** The same from row to row. `rows`: of the chain, each valid until the next one is asked for. */
final class Combinations(stage: StageSpec, rows: Iterator[UnsafeRow]) extends Iterator[InternalRow] {
  private val combining = new Combining(stage)
  private var ready: InternalRow = _

  def hasNext: Boolean = ready != null || advance()

  def next(): InternalRow = {
    if (!hasNext) throw new NoSuchElementException
    val row = ready
    ready = null
    row
  }

  private def advance(): Boolean = {
    while (ready == null) {
      if (combining.leaves) ready = combining.next()
      else if (rows.hasNext) {
        val chain = rows.next()
        if (!combining.take(chain)) ready = chain
      } else {
        combining.end()
        if (!combining.leaves) return false
      }
    }
    true
  }
}
