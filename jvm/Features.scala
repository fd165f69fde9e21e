/** Features: what is known of a key at each of its rows, told at once and never corrected.
  *
  * A row is put behind all that are not younger than it. Its window (t - delay - size, t - delay] then holds the rows of
  * these times that have come so far, itself included if there is no delay; what comes later changes no vector that was
  * told. A silence of `ttl` cuts: nothing before it is known after it.
  * Rows are kept while a row that is not late can ask for them: it is not older than W - lateness. */
package headrace.steps

import java.util.ArrayList

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, JoinedRow}
import org.apache.spark.sql.catalyst.util.GenericArrayData

/** What is kept of a row: its time, and what windows and `last` ask of it. */
final class Known(val time: Long, val args: GenericInternalRow)

/** One key: its rows by time, those of one time as they came. */
final class FeaturesState(val rows: ArrayList[Known]) extends State {
  def empty: Boolean = rows.isEmpty
  def held: Long = 0 // they are remembered, the rows have gone on

  /** How many of the rows from `low` to before `high` are not after this time, those before `low` included. */
  def upTo(time: Long, low: Int, high: Int): Int = {
    var (from, to) = (low, high)
    while (from < to) {
      val middle = (from + to) >>> 1
      if (rows.get(middle).time <= time) from = middle + 1 else to = middle
    }
    from
  }
}

/** Times in micros. */
final class Features(spec: RowStepSpec) extends RowStep[FeaturesState] {
  private val json = spec.json
  private val ttl = json.get("ttl").asLong
  private val lateness = json.get("lateness").asLong
  private val most = json.get("most").asInt
  private val kept = Features.ints(json.get("kept")) // where in the input the args stand
  private val kinds = kept.map(at => Kind.of(spec.inputs(0)(at)))
  private val windows = Array.tabulate(json.get("windows").size)(i => new Window(json.get("windows").get(i)))
  private val last = Array.tabulate(json.get("last").size)(i => Features.ints(json.get("last").get(i))) // (place, rows)
  private val reach = windows.map(window => window.size + window.delay).maxOption.getOrElse(0L)
  private val rowsBefore = last.map(_(1)).maxOption.getOrElse(0)
  private val values = windows.map(_.places.length).sum + last.length
  private val row = new Row // the one that an algebra is shown

  def fresh(): FeaturesState = new FeaturesState(new ArrayList[Known])

  def step(state: FeaturesState, row: Row, input: Int, before: Long, out: ArrayList[Given]): Int = {
    if (before != Times.NONE && row.time + lateness < before * Times.MILLI) return Verdict.LATE
    val args = new GenericInternalRow(Array.tabulate[Any](kept.length)(i => kinds(i).nullable(row.args, kept(i))))
    if (windows.exists(_.tally.noNumber(args))) return Verdict.NAN
    if (state.rows.size >= most) {
      drop(state, before)
      if (state.rows.size >= most) return Verdict.TOO_MANY
    }
    val at = state.upTo(row.time, 0, state.rows.size)
    state.rows.add(at, new Known(row.time, args))
    out.add(new Given(0, row.time, new JoinedRow(row.args, vector(state, at)), row, ""))
    Verdict.USED
  }

  override def late(row: Row, input: Int, watermark: Long): InternalRow =
    new JoinedRow(row.args, new GenericInternalRow(Array[Any](watermark)))

  /** Forgets what no row can ask for any more. */
  def onTime(state: FeaturesState, watermark: Long, clock: Long, out: ArrayList[Given]): Long = {
    drop(state, watermark)
    0
  }

  /** When all that windows ask for is forgotten, or the key. What could be forgotten before waits for the key's next row:
    * a quiet key is woken twice, not once for each of its rows. */
  def due(state: FeaturesState): Long =
    if (state.empty) Times.NEVER
    else {
      val stays = if (state.rows.size > rowsBefore) Math.min(reach, ttl) else ttl
      Times.upToMs(state.rows.get(state.rows.size - 1).time + stays + lateness)
    }

  /** The features of the row at this place. */
  private def vector(state: FeaturesState, at: Int): InternalRow = {
    val rows = state.rows
    var known = at // the first row after the last silence
    while (known > 0 && rows.get(known).time - rows.get(known - 1).time < ttl) known -= 1
    val told = new GenericInternalRow(values)
    var next = 0
    windows.foreach { window =>
      val end = rows.get(at).time - window.delay
      val first = state.upTo(end - window.size, known, at + 1)
      val found = window.over(rows, first, state.upTo(end, first, at + 1))
      System.arraycopy(found, 0, told.values, next, found.length)
      next += found.length
    }
    last.foreach { case Array(place, n) =>
      val found = Array.tabulate[Any](Math.min(n, at - known))(i => rows.get(at - 1 - i).args.values(place))
      told.values(next) = if (n > 1) new GenericArrayData(found) else found.headOption.orNull
      next += 1
    }
    told
  }

  /** A row that can still come is not older than `oldest`. */
  private def drop(state: FeaturesState, watermark: Long): Unit = if (watermark != Times.NONE && !state.empty) {
    val rows = state.rows
    val oldest = watermark * Times.MILLI - lateness
    if (rows.get(rows.size - 1).time + ttl <= oldest) rows.clear()
    else {
      val unasked = state.upTo(oldest, 0, rows.size) - rowsBefore
      val gone = Math.min(state.upTo(oldest - reach, 0, rows.size), unasked)
      if (gone > 0) rows.subList(0, gone).clear()
    }
  }

  /** Times are counted each from the row before it. */
  def write(state: FeaturesState, out: BlobWriter): Unit = {
    out.long(state.rows.size)
    var before = 0L
    state.rows.forEach { seen =>
      out.long(seen.time - before)
      before = seen.time
      kinds.indices.foreach(i => kinds(i).writeNullable(seen.args.values(i), out))
    }
  }

  def read(in: BlobReader): FeaturesState = {
    val count = in.int()
    val rows = new ArrayList[Known](count + 1) // a row is about to come
    var time = 0L
    while (rows.size < count) {
      time += in.long()
      rows.add(new Known(time, new GenericInternalRow(Array.tabulate[Any](kinds.length)(i => kinds(i).readNullable(in)))))
    }
    new FeaturesState(rows)
  }

  private final class Window(json: JsonNode) {
    val size: Long = json.get("size").asLong
    val delay: Long = json.get("delay").asLong
    val places: Array[Int] = Features.ints(json.get("places"))
    val tally = new Tally(json.get("aggregates"), places, kinds)

    /** The aggregates over rows from `first` to before `end`. */
    def over(rows: ArrayList[Known], first: Int, end: Int): Array[Any] = {
      val totals = tally.empty()
      var i = first
      while (i < end) {
        row.time = rows.get(i).time
        row.src = i // their order, for first, last and collect
        row.args = rows.get(i).args
        tally.add(totals, row)
        i += 1
      }
      tally.values(totals)
    }
  }
}

object Features {
  private def ints(node: JsonNode): Array[Int] = Array.tabulate(node.size)(node.get(_).asInt)
}
