/** Tumbling and hopping windows, kept as slices: the pieces of time that whole windows are made of.
  *
  * A row updates the one slice it lies in, not the size / every windows around it; a window's result merges its slices.
  * By processing time (rule W7) it is the same step: the caller gives rows the batch's clock as time, and the clock as
  * watermark; then no row is ever late. */
package headrace.steps

import java.util.{ArrayList, TreeMap}

import com.fasterxml.jackson.databind.JsonNode

/** The rows of one slice. */
final class Slice(val start: Long, var rows: Long, val states: Array[AnyRef])

/** One key. `time`: up to where it has seen time pass, micros (NONE: no watermark yet).
  * `changed`: a row came since the last `onTime` that may ask for a result at once; false between batches. */
final class SlicesState extends State {
  val slices = new ArrayList[Slice](4) // by start
  val sent = new TreeMap[java.lang.Long, Sent] // windows that sent something, by start
  var time: Long = Times.NONE
  var due: Long = Times.NEVER // micros
  var changed = false
  var latest: Slice = _ // the slice of the last row: the next row mostly lies in the same

  def empty: Boolean = slices.isEmpty

  def held: Long = {
    var total = 0L
    var i = 0
    while (i < slices.size) {
      total += slices.get(i).rows
      i += 1
    }
    total
  }

  /** Where the first slice stands that starts at or after this time. */
  def from(start: Long): Int = {
    var low = 0
    var high = slices.size
    while (low < high) {
      val middle = (low + high) >>> 1
      if (slices.get(middle).start < start) low = middle + 1 else high = middle
    }
    low
  }
}

/** Times in micros. Tumbling: `every` = `size`. */
final class Slices(spec: JsonNode, val tally: Tally, results: Array[Kind]) extends Step[SlicesState] {
  private val size = spec.get("size").asLong
  private val every = spec.get("every").asLong
  private val offset = spec.get("offset").asLong
  private val lateness = spec.get("lateness").asLong
  private val emit = Policy.of(spec.get("emit"))
  private val slice = BigInt(size).gcd(BigInt(every)).toLong
  private val layout = new SentLayout(if (spec.get("having").asBoolean) results else null)

  def ordered: Boolean = tally.ordered

  /** Start of the slice a time lies in. */
  def sliceOf(time: Long): Long = time - Math.floorMod(time - offset, slice)

  /** Start of the last window that contains the slice; the first starts `size - slice` or less before it. */
  private def lastWindow(slice: Long): Long = slice - Math.floorMod(slice - offset, every)

  /** Start of the first window that contains the slice: the first start after `slice - size`. */
  private def firstWindow(slice: Long): Long = {
    val after = slice - size
    after - Math.floorMod(after - offset, every) + every
  }

  /** The time at which every window that contains the slice is gone (rule W4). */
  private def gone(slice: Long): Long = lastWindow(slice) + size + lateness

  def fresh(): SlicesState = new SlicesState

  /** Puts the row into its slice, unless every window around it is gone: then it is late. */
  def step(state: SlicesState, row: Row, before: Long): Int = {
    passTime(state, before)
    val start = sliceOf(row.time)
    var found = state.latest
    var at = -1
    if (found == null || found.start != start) {
      if (state.time != Times.NONE && gone(start) <= state.time) return Verdict.LATE
      at = state.from(start)
      found = if (at < state.slices.size && state.slices.get(at).start == start) state.slices.get(at) else null
    }
    val reason = tally.refuses(if (found == null) null else found.states, row)
    if (reason >= 0) return reason
    if (found == null) {
      found = new Slice(start, 0, tally.empty())
      state.slices.add(at, found)
      state.due = Math.min(state.due, dueOf(start, state.time))
    }
    state.latest = found
    found.rows += 1
    tally.add(found.states, row)
    touch(state, start)
    Verdict.HELD
  }

  private def touch(state: SlicesState, start: Long): Unit = if (!state.changed)
    state.changed = emit.beforeClose || (state.time != Times.NONE && firstWindow(start) + size <= state.time)

  /** Whether every window around the slice is gone at this watermark, in ms. */
  def isGone(slice: Long, watermark: Long): Boolean = watermark != Times.NONE && gone(slice) <= watermark * Times.MILLI

  /** As `step` for rows that were put together elsewhere: none of them is late, none refused. */
  def merge(state: SlicesState, start: Long, rows: Long, states: Array[AnyRef], before: Long): Unit = {
    passTime(state, before)
    if (state.time != Times.NONE && gone(start) <= state.time)
      throw new IllegalStateException(s"[headrace:late-together] rows under watermark $before ms, but time stands at ${state.time} us")
    val at = state.from(start)
    if (at < state.slices.size && state.slices.get(at).start == start) {
      val found = state.slices.get(at)
      found.rows += rows
      tally.merge(found.states, states)
    } else {
      state.slices.add(at, new Slice(start, rows, states))
      state.due = Math.min(state.due, dueOf(start, state.time))
    }
    touch(state, start)
  }

  /** Moves time to the watermark: finals of the windows it closes, corrections of closed ones that got rows, early
    * results of open ones, by start; then drops what is gone. */
  def onTime(state: SlicesState, watermark: Long, clock: Long, passes: Passes, out: ArrayList[Result]): Long = {
    val time = if (watermark == Times.NONE) state.time else watermark * Times.MILLI
    if (!state.changed && (time == Times.NONE || time < state.due)) return 0
    sendDue(state, time, clock, passes, out)
    state.changed = false
    state.time = time
    drop(state)
  }

  def due(state: SlicesState): Long = if (state.due == Times.NEVER) Times.NEVER else Times.upToMs(state.due)

  /** Time may have passed unseen while nothing was due. */
  private def passTime(state: SlicesState, before: Long): Unit =
    if (before != Times.NONE && before * Times.MILLI > state.time) {
      state.time = before * Times.MILLI
      state.latest = null // it may be gone
    }

  /** Asks the windows that hold rows and are not gone, each once, in order. */
  private def sendDue(state: SlicesState, time: Long, clock: Long, passes: Passes, out: ArrayList[Result]): Unit = {
    var after = Times.NONE // windows up to here have been asked
    var i = 0
    while (i < state.slices.size) {
      val slice = state.slices.get(i).start
      val last = lastWindow(slice)
      var start = Math.max(firstWindow(slice), if (after == Times.NONE) after else after + every)
      while (start <= last) {
        // This window and all after it are open.
        if (!emit.beforeClose && (time == Times.NONE || start + size > time)) return
        if (state.time == Times.NONE || start + size + lateness > state.time) ask(state, start, time, clock, passes, out)
        after = start
        start += every
      }
      i += 1
    }
  }

  private def ask(state: SlicesState, start: Long, time: Long, clock: Long, passes: Passes, out: ArrayList[Result]): Unit = {
    val rows = rowsOf(state, start)
    var sent = state.sent.get(start)
    if (sent == null) sent = new Sent
    val end = start + size
    val kind = Emission.kindDue(emit, sent, rows, time != Times.NONE && end <= time, state.changed, clock)
    if (kind != null) {
      val values = tally.values(merged(state, start))
      val result = new Result(start, end, kind, sent.revision, values, end - 1, s"$start/$end/${sent.revision}")
      Emission.send(out, sent, result, rows, clock, passes)
      state.sent.put(start, sent)
    }
  }

  private def rowsOf(state: SlicesState, start: Long): Long = {
    var total = 0L
    var i = state.from(start)
    while (i < state.slices.size && state.slices.get(i).start < start + size) {
      total += state.slices.get(i).rows
      i += 1
    }
    total
  }

  private def merged(state: SlicesState, start: Long): Array[AnyRef] = {
    var i = state.from(start)
    if (slice == size) return state.slices.get(i).states // tumbling: the slice is the window
    val merged = tally.empty()
    while (i < state.slices.size && state.slices.get(i).start < start + size) {
      tally.merge(merged, state.slices.get(i).states)
      i += 1
    }
    merged
  }

  /** Drops slices and windows that are gone, and finds the next due time. */
  private def drop(state: SlicesState): Long = {
    var used = 0L
    if (state.time != Times.NONE) {
      var gones = 0 // slices are in order, so those that are gone come first
      while (gones < state.slices.size && gone(state.slices.get(gones).start) <= state.time) {
        used += state.slices.get(gones).rows
        gones += 1
      }
      if (gones > 0) {
        state.slices.subList(0, gones).clear()
        state.latest = null
      }
      while (!state.sent.isEmpty && state.sent.firstKey + size + lateness <= state.time) state.sent.pollFirstEntry()
    }
    state.due = Times.NEVER
    var i = 0
    while (i < state.slices.size) {
      state.due = Math.min(state.due, dueOf(state.slices.get(i).start, state.time))
      i += 1
    }
    used
  }

  /** When a slice next needs attention: the next close of a window around it; after the last one, when it is gone. */
  private def dueOf(slice: Long, time: Long): Long = {
    var end = firstWindow(slice) + size
    if (time != Times.NONE && end <= time) end += (Math.floorDiv(time - end, every) + 1) * every
    if (end <= lastWindow(slice) + size) end else gone(slice)
  }

  /** Starts are counted in slices, each from the one before it. */
  def write(state: SlicesState, out: BlobWriter): Unit = {
    out.long(state.time)
    out.long(state.due)
    out.long(state.slices.size)
    var last = 0L
    var i = 0
    while (i < state.slices.size) {
      val found = state.slices.get(i)
      val number = (found.start - offset) / slice
      out.long(number - last)
      last = number
      out.long(found.rows)
      tally.write(found.states, out)
      i += 1
    }
    out.long(state.sent.size)
    last = 0
    state.sent.forEach { (start, sent) =>
      val number = (start - offset) / every
      out.long(number - last)
      last = number
      layout.write(sent, out)
    }
  }

  def read(in: BlobReader): SlicesState = {
    val state = new SlicesState
    state.time = in.long()
    state.due = in.long()
    var left = in.int()
    var number = 0L
    while (left > 0) {
      number += in.long()
      state.slices.add(new Slice(number * slice + offset, in.long(), tally.read(in)))
      left -= 1
    }
    left = in.int()
    number = 0
    while (left > 0) {
      number += in.long()
      state.sent.put(number * every + offset, layout.read(in))
      left -= 1
    }
    state
  }
}
