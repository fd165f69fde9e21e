/** Features: what is known of a key at each of its rows, told at once and never corrected.
  *
  * A row is put behind all that are not younger than it. Its window (t - delay - size, t - delay] then holds the rows of
  * these times that have come so far, itself included if there is no delay; what comes later changes no vector that was
  * told. A silence of `ttl` cuts: nothing before it is known after it.
  * Rows are kept while a row that is not late can ask for them: it is not older than W - lateness. Rows of other inputs
  * are only remembered: one is late when no row can ask for it any more. Of a window in tiles (Tiles.scala) those older
  * than W - lateness are put into their tiles: no row that comes is older, so all are told of the whole of them. */
package headrace.steps

import java.util.ArrayList

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, JoinedRow}
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.unsafe.types.UTF8String

/** What is kept of a row: its time, and what windows and `last` ask of it. `id`: a hash of it, if a row is told once.
  * `place`: if vectors say what they are over. */
final class Known(val time: Long, val args: GenericInternalRow, val id: Long, val place: Place)

/** One key: of each input its rows by time, those of one time as they came; of each window its tiles, null if it is exact.
  * Rows that are older than `tiled` are in their tiles; those of the first input that come are not older. */
final class FeaturesState(val inputs: Array[ArrayList[Known]], val tiles: Array[Tiles]) extends State {
  var tiled: Long = Times.NONE

  def empty: Boolean = inputs.forall(_.isEmpty) && tiles.forall(own => own == null || own.added.isEmpty)
  def held: Long = 0 // they are remembered, the rows have gone on

  // What follows is not kept: it saves work while rows of a batch come. They come in order of time, so that none is put
  // among those that were added up.
  val sums: Array[WindowSum] = Array.fill(tiles.length)(new WindowSum)
  var known: Int = -1 // the first row after the last silence, as the newest row has it; -1: not known
}

/** The totals of a window over rows from `first` to before `end`, as it was told last; null: of none. */
final class WindowSum {
  var first = 0
  var end = 0
  var totals: Array[AnyRef] = _
}

/** Times in micros. */
final class Features(spec: RowStepSpec) extends RowStep[FeaturesState] {
  import Features._

  private val json = spec.json
  private val ttl = json.get("ttl").asLong
  private val lateness = json.get("lateness").asLong
  private val most = json.get("most").asInt
  private val once = json.get("once").asBoolean // the id stands last among the args of a row that is told
  private val seen = if (json.get("seen").asBoolean) new SeenRows(spec.topics) else null
  private val shown = Array.tabulate(json.get("kept").size)(i => ints(json.get("kept").get(i))) // where the args stand
  private val idKind = if (once) Kind.of(spec.inputs(0)(shown(0).last)) else null
  private val kept = if (once) shown.updated(0, shown(0).init) else shown
  private val kinds = kept.indices.map(i => kept(i).map(at => Kind.of(spec.inputs(i)(at)))).toArray
  private val windows = Array.tabulate(json.get("windows").size)(i => new Window(json.get("windows").get(i)))
  private val counting = kept.indices.map(i => windows.filter(_.input == i)).toArray // by input
  private val tiling = windows.indices.filter(windows(_).tiling != null).toArray
  private val last = Array.tabulate(json.get("last").size)(i => ints(json.get("last").get(i))) // (place, rows)
  // A repeated row that is not late is not older than W - lateness: one micro more, and its id is still known. The same for
  // a row that is not in its tile yet.
  private val reaches = counting.zipWithIndex.map { case (some, i) =>
    some.map(_.reach).maxOption.getOrElse(if (once && i == 0) 1L else 0L)
  }
  private val rowsBefore = last.map(_(1)).maxOption.getOrElse(0)
  private val values = windows.map(_.places.length).sum + last.length + (if (seen != null) 1 else 0)
  private val row = new Row // the one that an algebra is shown
  private val whole = new Array[Tile](windows.length) // windows in tiles, as they were told last

  def fresh(): FeaturesState =
    new FeaturesState(Array.fill(kept.length)(new ArrayList[Known]), windows.map(window => if (window.tiling == null) null else new Tiles))

  /** Among rows of one time what is remembered is there when a row is told of it. */
  override def turn(input: Int): Int = if (input == 0) 1 else 0

  def step(state: FeaturesState, row: Row, input: Int, before: Long, out: ArrayList[Given]): Int = {
    val rows = state.inputs(input)
    if (before != Times.NONE && isLate(row.time, input, before * Times.MILLI)) return Verdict.LATE
    val id = if (once && input == 0) Hll.hash64(idKind.canonical(idKind.get(row.args, shown(0).last))) else 0L
    if (once && input == 0 && isKnown(rows, id)) return Verdict.DUPLICATE
    val at = kept(input)
    val args = new GenericInternalRow(Array.tabulate[Any](at.length)(i => kinds(input)(i).nullable(row.args, at(i))))
    if (counting(input).exists(_.tally.noNumber(args))) return Verdict.NAN
    if (rows.size >= most) {
      drop(state, before)
      if (rows.size >= most) return Verdict.TOO_MANY
    }
    val behind = upTo(rows, row.time, 0, rows.size)
    val known = new Known(row.time, args, id, if (seen == null) null else Place.of(row, spec.topics))
    rows.add(behind, known)
    if (row.time < state.tiled) // of another input: its tile is there already
      tiling.foreach(w => if (windows(w).input == input) windows(w).tiling.put(state.tiles(w), known))
    if (input == 0) out.add(new Given(0, row.time, new JoinedRow(row.args, vector(state, row.time, behind)), row, ""))
    Verdict.USED
  }

  /** A row that is told must find what its windows need. One that is remembered needs nothing: it is late when nobody can
    * ask for it. */
  private def isLate(time: Long, input: Int, watermark: Long): Boolean =
    if (input == 0) time + lateness < watermark
    else {
      var end = time + reaches(input)
      counting(input).foreach(window => if (window.tiling != null) end = Math.max(end, window.tiling.gone(time)))
      end + lateness <= watermark
    }

  private def isKnown(rows: ArrayList[Known], id: Long): Boolean = {
    var i = rows.size - 1
    while (i >= 0 && rows.get(i).id != id) i -= 1
    i >= 0
  }

  /** Of those that are only remembered nobody was to be told: they are counted. */
  override def late(row: Row, input: Int, watermark: Long): InternalRow =
    if (input == 0) new JoinedRow(row.args, new GenericInternalRow(Array[Any](watermark))) else null

  /** Forgets what no row can ask for any more. */
  def onTime(state: FeaturesState, watermark: Long, clock: Long, out: ArrayList[Given]): Long = {
    drop(state, watermark)
    0
  }

  /** When all that windows ask for is forgotten, or the key. What could be forgotten before waits for the key's next row:
    * a quiet key is woken a few times, not once for each of its rows. */
  def due(state: FeaturesState): Long = {
    var end = Times.NEVER
    var i = 0
    while (i < reaches.length) {
      val rows = state.inputs(i)
      val stays = if (i > 0) reaches(i) else if (rows.size > rowsBefore) Math.min(reaches(0), ttl) else ttl
      if (!rows.isEmpty) end = Math.min(end, rows.get(rows.size - 1).time + stays)
      i += 1
    }
    tiling.foreach(w => end = Math.min(end, windows(w).tiling.ends(state.tiles(w))))
    if (end == Times.NEVER) end else Times.upToMs(end + lateness)
  }

  /** The features at this time; `at`: how many rows are before. */
  private def vector(state: FeaturesState, time: Long, at: Int): InternalRow = {
    val rows = state.inputs(0)
    val end = upTo(rows, time, at, rows.size)
    val known = knownFrom(state, at)
    val told = new GenericInternalRow(values)
    var next = 0
    var w = 0
    while (w < windows.length) {
      val window = windows(w)
      val over = state.inputs(window.input)
      val high = if (window.input == 0) end else over.size
      val found =
        if (window.tiling != null) { // no silence is as long as its ttl
          val first = untiled(state, over, window.tiling.firstOf(time))
          whole(w) = window.tiling.whole(state.tiles(w), over, first, upTo(over, time, first, high), time)
          window.tally.values(whole(w).states)
        } else {
          val until = time - window.delay
          val first = upTo(over, until - window.size, if (window.input == 0) known else 0, high)
          window.over(over, first, upTo(over, until, first, high), state.sums(w))
        }
      System.arraycopy(found, 0, told.values, next, found.length)
      next += found.length
      w += 1
    }
    last.foreach { case Array(place, n) =>
      val found = Array.tabulate[Any](Math.min(n, at - known))(i => rows.get(at - 1 - i).args.values(place))
      told.values(next) = if (n > 1) new GenericArrayData(found) else found.headOption.orNull
      next += 1
    }
    if (seen != null) told.values(next) = UTF8String.fromString(seenAt(state, time, at, known))
    told
  }

  /** The first row after the last silence, for the row at this place. */
  private def knownFrom(state: FeaturesState, at: Int): Int = {
    val rows = state.inputs(0)
    def silentBefore(i: Int): Boolean = i == 0 || rows.get(i).time - rows.get(i - 1).time >= ttl
    if (state.known >= 0 && at == rows.size - 1) {
      if (silentBefore(at)) state.known = at
      return state.known
    }
    var known = at
    while (!silentBefore(known)) known -= 1
    if (at == rows.size - 1) state.known = known
    known
  }

  /** Where the first row stands that is not older than this time and in no tile yet. */
  private def untiled(state: FeaturesState, rows: ArrayList[Known], since: Long): Int =
    older(rows, Math.max(since, state.tiled))

  /** Rows of this input are no longer where they were. */
  private def moved(state: FeaturesState, input: Int): Unit = {
    windows.indices.foreach(w => if (windows(w).input == input) {
      state.sums(w).totals = null
      if (state.tiles(w) != null) state.tiles(w).moved()
    })
    if (input == 0) state.known = -1
  }

  /** Which rows the vector is over: of each input those of the window that begins first, be it of rows or of tiles, and
    * those before. */
  private def seenAt(state: FeaturesState, time: Long, at: Int, known: Int): String = {
    seen.clear()
    reaches.indices.foreach { input =>
      val rows = state.inputs(input)
      var stop = upTo(rows, time, 0, rows.size)
      val first = upTo(rows, time - reaches(input), 0, stop)
      val (low, before) = if (input == 0) (known, at - rowsBefore) else (0, stop)
      tiling.filter(windows(_).input == input).minByOption(windows(_).tiling.firstOf(time)).foreach { w =>
        val begin = windows(w).tiling.firstOf(time)
        if (begin <= time - reaches(input)) {
          seen.merge(whole(w).seen)
          stop = older(rows, begin)
        }
      }
      (Math.max(low, Math.min(first, before)) until stop).foreach(i => seen.add(rows.get(i).place))
    }
    seen.text
  }

  /** A row that can still come and be told is not older than `oldest`. */
  private def drop(state: FeaturesState, watermark: Long): Unit = if (watermark != Times.NONE) {
    val oldest = watermark * Times.MILLI - lateness
    tile(state, oldest)
    var i = 0
    while (i < reaches.length) {
      val rows = state.inputs(i)
      var gone = upTo(rows, oldest - reaches(i), 0, rows.size)
      if (i == 0) {
        if (!rows.isEmpty && rows.get(rows.size - 1).time + ttl <= oldest) gone = rows.size
        else gone = Math.min(gone, upTo(rows, oldest, 0, rows.size) - rowsBefore)
      }
      if (gone > 0) {
        rows.subList(0, gone).clear()
        moved(state, i)
      }
      i += 1
    }
  }

  /** Puts rows into their tiles that none which comes can be older than. */
  private def tile(state: FeaturesState, oldest: Long): Unit = {
    tiling.foreach { w =>
      val (rows, own, tiles) = (state.inputs(windows(w).input), windows(w).tiling, state.tiles(w))
      val first = untiled(state, rows, Times.NONE)
      (first until older(rows, oldest)).foreach(i => own.put(tiles, rows.get(i)))
      own.forget(tiles, oldest)
    }
    state.tiled = Math.max(oldest, state.tiled)
  }

  /** Times are counted each from the row before it. Tiles follow if there are any: exact windows are kept as ever. */
  def write(state: FeaturesState, out: BlobWriter): Unit = {
    state.inputs.indices.foreach(input => write(state.inputs(input), input, out))
    if (tiling.nonEmpty) out.long(state.tiled)
    tiling.foreach(w => windows(w).tiling.write(state.tiles(w), out))
  }

  private def write(rows: ArrayList[Known], input: Int, out: BlobWriter): Unit = {
    val kind = kinds(input)
    out.long(rows.size)
    var before = 0L
    rows.forEach { one =>
      out.long(one.time - before)
      before = one.time
      kind.indices.foreach(i => kind(i).writeNullable(one.args.values(i), out))
      if (once && input == 0) out.fixed(one.id)
      if (seen != null) one.place.write(out)
    }
  }

  def read(in: BlobReader): FeaturesState = {
    val inputs = Array.tabulate(kept.length)(input => readRows(input, in))
    val tiled = if (tiling.nonEmpty) in.long() else Times.NONE
    val state = new FeaturesState(inputs, windows.map(window => if (window.tiling == null) null else window.tiling.read(in)))
    state.tiled = tiled
    state
  }

  private def readRows(input: Int, in: BlobReader): ArrayList[Known] = {
    val kind = kinds(input)
    val count = in.int()
    val rows = new ArrayList[Known](count + 1) // a row is about to come
    var time = 0L
    while (rows.size < count) {
      time += in.long()
      val args = new GenericInternalRow(Array.tabulate[Any](kind.length)(i => kind(i).readNullable(in)))
      val id = if (once && input == 0) in.fixed() else 0L
      rows.add(new Known(time, args, id, if (seen == null) null else Place.read(in)))
    }
    rows
  }

  private final class Window(json: JsonNode) {
    val size: Long = json.get("size").asLong
    val delay: Long = json.get("delay").asLong
    val input: Int = json.get("input").asInt
    val places: Array[Int] = ints(json.get("places"))
    val tally = new Tally(json.get("aggregates"), places, kinds(input))
    val tiling: Tiling = // null: it is exact
      if (json.get("tile").asLong == 0) null else new Tiling(size, json.get("tile").asLong, tally, if (seen == null) null else spec.topics)
    val reach: Long = if (tiling != null) 1 else size + delay

    /** The aggregates over rows from `first` to before `end`. Where each of them can give a value back exactly, the
      * window slides on from where it was told last; else, and where it went back, all its rows are added anew. */
    def over(rows: ArrayList[Known], first: Int, end: Int, sum: WindowSum): Array[Any] = {
      if (!tally.removable || sum.totals == null || first < sum.first || end < sum.end || first >= sum.end) {
        sum.totals = tally.empty()
        sum.first = first
        sum.end = first
      }
      while (sum.first < first) {
        tally.remove(sum.totals, rows.get(sum.first).args)
        sum.first += 1
      }
      while (sum.end < end) {
        row.time = rows.get(sum.end).time
        row.src = sum.end // their order, for first, last and collect
        row.args = rows.get(sum.end).args
        tally.add(sum.totals, row)
        sum.end += 1
      }
      tally.values(sum.totals)
    }
  }
}

object Features {
  /** How many of the rows from `low` to before `high` are not after this time, those before `low` included. */
  private def upTo(rows: ArrayList[Known], time: Long, low: Int, high: Int): Int = {
    var (from, to) = (low, high)
    while (from < to) {
      val middle = (from + to) >>> 1
      if (rows.get(middle).time <= time) from = middle + 1 else to = middle
    }
    from
  }

  private def older(rows: ArrayList[Known], time: Long): Int = if (time == Times.NONE) 0 else upTo(rows, time - 1, 0, rows.size)

  private def ints(node: JsonNode): Array[Int] = Array.tabulate(node.size)(node.get(_).asInt)
}
