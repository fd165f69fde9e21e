/** Rows of one key and slice put together before the shuffle: fewer to move, to sort, and to look a state up for.
  *
  * Only rows of the log, and only those that no watermark can make late and no aggregate refuses: the others go on as they
  * are, and the kernel judges them. So both ways give the same. Where keys hardly repeat it gives up, since it would only
  * be in the way. Not for real-time mode, where a task does not end: windows do not run there (rule R5). */
package headrace

import java.util.{ArrayList, Arrays, Iterator => JavaIterator}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, GenericInternalRow, InterpretedUnsafeProjection, UnsafeProjection, UnsafeRow, XXH64}
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.array.ByteArrayMethods

import headrace.steps.{BlobWriter, Order, Row, Slices, Times}

object Combine {

  /** The step of this spec, if its rows can be put together: a window of slices, and no row is refused by what came
    * before it. */
  def slicesOf(stage: StageSpec, layout: StepLayout): Option[Slices] = (layout.step: AnyRef) match {
    case slices: Slices if !stage.byClock && !slices.ordered => Some(slices)
    case _ => None
  }

  def helps(stage: StageSpec): Boolean =
    stage.steps.exists(step => !step.givesRows && slicesOf(stage, new StepLayout(stage, step)).isDefined)
}

/** What has come together so far of one key and slice. */
private final class Portion(val hash: Long, val ordinal: Int, val start: Long, val before: Long, val key: Array[Byte], val keyColumns: Array[Byte], val states: Array[AnyRef]) {
  var rows = 0L

  /** `base`, `offset`, `length`: where a row's key lies. */
  def holds(hash: Long, ordinal: Int, start: Long, before: Long, base: AnyRef, offset: Long, length: Int): Boolean =
    this.hash == hash && this.start == start && this.before == before && this.ordinal == ordinal && key.length == length &&
      ByteArrayMethods.arrayEquals(base, offset, key, Platform.BYTE_ARRAY_OFFSET, length)
}

private final class Combiner(stage: StageSpec, val spec: StepSpec) {
  private val layout = new StepLayout(stage, spec)
  val slices: Slices = Combine.slicesOf(stage, layout).orNull
  val payload = new UnsafeRow(layout.columns)
  private lazy val keyOut: UnsafeProjection = InterpretedUnsafeProjection.createProjection(
    (0 until spec.keys).map(i => BoundReference(i, spec.input(i).kind.spark, nullable = true)))

  def keyColumns: Array[Byte] = if (layout.keyKept) keyOut(payload).getBytes else null
}

/** `rows`: of the chain, each valid until the next one is asked for. */
final class Combining(stage: StageSpec, rows: Iterator[InternalRow]) extends Iterator[InternalRow] {
  import Combining._

  private val combiners = stage.steps.filterNot(_.givesRows).map(new Combiner(stage, _)).filter(_.slices != null)
  private val parts = new ArrayList[Portion]
  private val places = new Array[Portion](PLACES) // by hash, or in the next free place: one look in memory instead of a map's three
  private val row = new Row
  private val out = new BlobWriter
  private var leaving: JavaIterator[Portion] = _
  private var ready: InternalRow = _
  private var taken = 0L // rows, since parts last left
  private var givenUp = false

  def hasNext: Boolean = ready != null || advance()

  def next(): InternalRow = {
    if (!hasNext) throw new NoSuchElementException
    val row = ready
    ready = null
    row
  }

  private def advance(): Boolean = {
    while (ready == null) {
      if (leaving != null) {
        if (leaving.hasNext) ready = together(leaving.next())
        else {
          leaving = null
          parts.clear()
          Arrays.fill(places.asInstanceOf[Array[AnyRef]], null)
        }
      } else if (rows.hasNext) {
        val chain = rows.next().asInstanceOf[UnsafeRow]
        if (givenUp || !take(chain)) ready = chain
        else if (parts.size >= MOST) {
          givenUp = taken < MOST * 2
          taken = 0
          leaving = parts.iterator
        }
      } else if (parts.isEmpty) return false
      else leaving = parts.iterator
    }
    true
  }

  /** Adds the row to its part, if it may be. */
  private def take(chain: UnsafeRow): Boolean = {
    val combiner = combinerOf(chain.getInt(Stage.STEP))
    if (combiner == null || chain.getInt(Stage.SRC) >= Stage.DERIVED) return false
    val told = chain.getLong(Stage.BEFORE)
    val before = if (told == Times.NONE) told else told - combiner.spec.hold
    val start = combiner.slices.sliceOf(chain.getLong(Stage.TIME))
    if (combiner.slices.isGone(start, before)) return false
    point(chain, combiner)
    if (combiner.slices.tally.refuses(null, row) >= 0) return false
    val part = partOf(chain, combiner, start, told)
    part.rows += 1
    combiner.slices.tally.add(part.states, row)
    taken += 1
    true
  }

  private def combinerOf(ordinal: Int): Combiner = {
    var i = 0
    while (i < combiners.length) {
      if (combiners(i).spec.ordinal == ordinal) return combiners(i)
      i += 1
    }
    null
  }

  private def point(chain: UnsafeRow, combiner: Combiner): Unit = {
    row.time = chain.getLong(Stage.TIME)
    row.src = chain.getInt(Stage.SRC)
    row.part = chain.getInt(Stage.PART)
    row.off = chain.getLong(Stage.OFF)
    row.id = if (chain.isNullAt(Stage.ID)) Order.NO_ID else chain.getBinary(Stage.ID)
    Stage.pointPayload(chain, combiner.payload)
    row.args = combiner.payload
  }

  private def partOf(chain: UnsafeRow, combiner: Combiner, start: Long, before: Long): Portion = {
    val place = chain.getLong(Stage.KEY) // offset and size of a binary column, as UnsafeRow keeps them
    val base = chain.getBaseObject
    val offset = chain.getBaseOffset + (place >>> 32)
    val ordinal = combiner.spec.ordinal
    val hash = XXH64.hashUnsafeBytes(base, offset, place.toInt, start + ordinal)
    var at = hash.toInt & (PLACES - 1)
    while (places(at) != null) {
      if (places(at).holds(hash, ordinal, start, before, base, offset, place.toInt)) return places(at)
      at = (at + 1) & (PLACES - 1)
    }
    val made = new Portion(hash, ordinal, start, before, chain.getBinary(Stage.KEY), combiner.keyColumns, combiner.slices.tally.empty())
    places(at) = made
    parts.add(made)
    made
  }

  /** A part as a row of the chain: its time is the slice's start, its offset the number of rows. */
  private def together(part: Portion): InternalRow = {
    out.clear()
    if (part.keyColumns != null) out.binary(part.keyColumns)
    combinerOf(part.ordinal).slices.tally.write(part.states, out)
    new GenericInternalRow(Array[Any](part.ordinal, Stage.TOGETHER, part.key, part.start, part.before, 0, 0, part.rows, null, out.result()))
  }
}

private object Combining {
  val MOST = 1 << 15 // parts in memory; if they are of less than two rows each, keys hardly repeat
  val PLACES = MOST * 2
}
