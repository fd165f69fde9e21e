/** Rows of one key and slice put together before the shuffle: fewer to move, to sort, and to look a state up for.
  *
  * Only rows of the log, and only those that no watermark can make late and no aggregate refuses: the others go on as they
  * are, and the kernel judges them. So both ways give the same. Where keys hardly repeat it gives up, since it would only
  * be in the way. Not for real-time mode, where a task does not end: windows do not run there (rule R5). */
package headrace

import java.util.ArrayList

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, GenericInternalRow, InterpretedUnsafeProjection, UnsafeProjection, UnsafeRow}

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

  // Interpreted: made for every task, and generating code for it would cost more than its rows.
  private lazy val keyOut: UnsafeProjection = InterpretedUnsafeProjection.createProjection(
    (0 until spec.keys).map(i => BoundReference(i, spec.input(i).kind.spark, nullable = true)))

  val ordinal: Int = spec.ordinal

  def full: Boolean = portions.size >= MOST

  /** Adds the row to its portion, if it may be. */
  def take(chain: UnsafeRow): Boolean = {
    if (givenUp || chain.getInt(Stage.SRC) >= Stage.DERIVED) return false
    val told = chain.getLong(Stage.BEFORE)
    if (portions.size == 0) before = told
    else if (told != before) return false
    val start = slices.sliceOf(chain.getLong(Stage.TIME))
    if (slices.isGone(start, if (told == Times.NONE) told else told - spec.hold)) return false
    point(chain)
    if (tally.refuses(null, row) >= 0) return false
    val place = chain.getLong(Stage.KEY) // offset and size of a binary column, as UnsafeRow keeps them
    val known = portions.size
    val portion = portions.add(start, chain.getBaseObject, chain.getBaseOffset + (place >>> 32), place.toInt)
    if (layout.keyKept && portion == known) keyColumns.add(keyOut(payload).copy().getBytes)
    if (tally.width > 0) tally.add(portions.words, portions.counted(portion), row)
    else {
      if (portion == known) states.add(tally.empty())
      tally.add(states.get(portion), row)
    }
    taken += 1
    true
  }

  private def point(chain: UnsafeRow): Unit = {
    row.time = chain.getLong(Stage.TIME)
    row.src = chain.getInt(Stage.SRC)
    row.part = chain.getInt(Stage.PART)
    row.off = chain.getLong(Stage.OFF)
    row.id = if (chain.isNullAt(Stage.ID)) Order.NO_ID else chain.getBinary(Stage.ID)
    Stage.pointPayload(chain, payload)
    row.args = payload
  }

  /** Every portion as a row of the chain; after the last there are none. */
  def leave(): Iterator[InternalRow] = Iterator.range(0, portions.size).map(together) ++ Iterator.single(()).flatMap { _ =>
    givenUp = taken < portions.size * 2
    taken = 0
    portions.clear()
    states.clear()
    keyColumns.clear()
    Iterator.empty
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

/** `rows`: of the chain, each valid until the next one is asked for. */
final class Combining(stage: StageSpec, rows: Iterator[InternalRow]) extends Iterator[InternalRow] {
  private val combiners = Combine.combiners(stage)
  private var leaving: Iterator[InternalRow] = Iterator.empty
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
      if (leaving.hasNext) ready = leaving.next()
      else if (rows.hasNext) {
        val chain = rows.next().asInstanceOf[UnsafeRow]
        val combiner = combinerOf(chain.getInt(Stage.STEP))
        if (combiner == null || !combiner.take(chain)) ready = chain
        else if (combiner.full) leaving = combiner.leave()
      } else {
        leaving = combiners.iterator.flatMap(_.leave())
        if (!leaving.hasNext) return false
      }
    }
    true
  }

  private def combinerOf(ordinal: Int): Combiner = {
    var i = 0
    while (i < combiners.length) {
      if (combiners(i).ordinal == ordinal) return combiners(i)
      i += 1
    }
    null
  }
}
